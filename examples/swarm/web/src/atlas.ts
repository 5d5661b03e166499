// The shapes of everything that is drawn, painted once into a texture.

import {
  ATLAS_HEIGHT,
  ATLAS_WIDTH,
  FISH_FRAMES,
  PAINT_FRAGMENT,
  PAINT_VERTEX,
} from "./shaders.js";
import { linked, withCorners } from "./programs.js";

/** A fish beats its tail once over its frames. */
const FISH_CELL = 128;
const CELL = 256;
const SHAPES = 5;

/** Paint it, and return it. What else the context was set to is as it was, but for program, buffers and viewport. */
export function paintAtlas(gl: WebGL2RenderingContext): WebGLTexture {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, 5, gl.RGBA8, ATLAS_WIDTH, ATLAS_HEIGHT);
  const target = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, target);
  gl.framebufferTexture2D(
    gl.FRAMEBUFFER,
    gl.COLOR_ATTACHMENT0,
    gl.TEXTURE_2D,
    texture,
    0,
  );
  paintShapes(gl);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.deleteFramebuffer(target);
  gl.generateMipmap(gl.TEXTURE_2D);
  gl.texParameteri(
    gl.TEXTURE_2D,
    gl.TEXTURE_MIN_FILTER,
    gl.LINEAR_MIPMAP_NEAREST,
  );
  return texture;
}

function paintShapes(gl: WebGL2RenderingContext): void {
  const program = linked(gl, PAINT_VERTEX, PAINT_FRAGMENT);
  const vertices = withCorners(gl, program, [-1, -1, 1, -1, -1, 1, 1, 1]);
  gl.useProgram(program);
  gl.disable(gl.BLEND);
  const shapeAt = gl.getUniformLocation(program, "shape");
  const phaseAt = gl.getUniformLocation(program, "phase");
  const paint = (shape: number, phase: number): void => {
    gl.uniform1f(shapeAt, shape);
    gl.uniform1f(phaseAt, phase);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  };
  for (let frame = 0; frame < FISH_FRAMES; frame++) {
    const [column, row] = [frame % 8, Math.floor(frame / 8)];
    gl.viewport(column * FISH_CELL, row * FISH_CELL, FISH_CELL, FISH_CELL);
    paint(0, (frame / FISH_FRAMES) * 2 * Math.PI);
  }
  for (let shape = 1; shape < SHAPES; shape++) {
    gl.viewport((shape - 1) * CELL, CELL, CELL, CELL);
    paint(shape, 0);
  }
  gl.deleteVertexArray(vertices);
  gl.deleteProgram(program);
}
