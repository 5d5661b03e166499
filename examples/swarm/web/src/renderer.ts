// Draws sprites over the water: two calls to WebGL a frame, whatever is in it.

import { paintAtlas } from "./atlas.js";
import { linked, withCorners } from "./programs.js";
import { SIZE } from "./shared.gen.js";
import {
  SPRITE_FRAGMENT,
  SPRITE_VERTEX,
  WATER_FRAGMENT,
  WATER_VERTEX,
} from "./shaders.js";
import { FLOATS, MOST_SPRITES, type Colour, type Sprites } from "./sprites.js";

/** What the window shows, in units of the sea. `halfWidth` and `halfHeight` reach from the middle to the edges. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly halfWidth: number;
  readonly halfHeight: number;
  /** Where the player's light is, and its colour. */
  readonly ownX: number;
  readonly ownY: number;
  readonly tint: Colour;
  /** In seconds. */
  readonly time: number;
}

const MESH_COLUMNS = 48;
const MESH_ROWS = 30;
/** More pixels than this for each of the page's would cost more than anyone sees. */
const MOST_RATIO = 2;
const UNIFORMS = [
  "atlas",
  "centre",
  "halos",
  "hues",
  "own",
  "size",
  "span",
  "time",
  "tint",
] as const;

interface Pass {
  readonly program: WebGLProgram;
  readonly vertices: WebGLVertexArrayObject;
  readonly uniforms: Readonly<
    Record<(typeof UNIFORMS)[number], WebGLUniformLocation | null>
  >;
}

export class Renderer {
  readonly #canvas: HTMLCanvasElement;
  readonly #gl: WebGL2RenderingContext;
  #water!: Pass;
  #sprites!: Pass;
  #instances!: WebGLBuffer;

  /** Throws where the browser has no WebGL 2. */
  constructor(canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", {
      alpha: false,
      antialias: false,
      depth: false,
      powerPreference: "high-performance",
    });
    if (gl === null) throw new Error("this browser has no WebGL 2");
    this.#canvas = canvas;
    this.#gl = gl;
    this.#build();
    // A card that was reset has forgotten everything.
    canvas.addEventListener("webglcontextlost", (event) =>
      event.preventDefault(),
    );
    canvas.addEventListener("webglcontextrestored", () => this.#build());
  }

  #build(): void {
    const gl = this.#gl;
    gl.bindTexture(gl.TEXTURE_2D, paintAtlas(gl));
    gl.blendFunc(gl.ONE, gl.ONE);
    this.#water = this.#pass(WATER_VERTEX, WATER_FRAGMENT, meshPoints());
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, meshCorners(), gl.STATIC_DRAW);
    const square = [-1, -1, 1, -1, -1, 1, 1, 1];
    this.#sprites = this.#pass(SPRITE_VERTEX, SPRITE_FRAGMENT, square);
    this.#instances = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#instances);
    gl.bufferData(gl.ARRAY_BUFFER, MOST_SPRITES * FLOATS * 4, gl.DYNAMIC_DRAW);
    for (const [name, width, from] of [
      ["place", 4, 0],
      ["colour", 4, 4],
      ["look", 2, 8],
    ] as const) {
      const at = gl.getAttribLocation(this.#sprites.program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, width, gl.FLOAT, false, FLOATS * 4, from * 4);
      gl.vertexAttribDivisor(at, 1);
    }
  }

  #pass(vertex: string, fragment: string, points: readonly number[]): Pass {
    const gl = this.#gl;
    const program = linked(gl, vertex, fragment);
    const uniforms = Object.fromEntries(
      UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]),
    ) as Pass["uniforms"];
    return { program, vertices: withCorners(gl, program, points), uniforms };
  }

  /** As many pixels as the screen has, whatever the zoom. */
  #resize(): void {
    const canvas = this.#canvas;
    const ratio = Math.min(devicePixelRatio, MOST_RATIO);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
  }

  draw(view: View, sprites: Sprites): void {
    if (this.#gl.isContextLost()) return;
    this.#resize();
    this.#gl.viewport(0, 0, this.#canvas.width, this.#canvas.height);
    this.#drawWater(view, sprites);
    this.#drawSprites(view, sprites);
  }

  #drawWater(view: View, { halos, hues }: Sprites): void {
    const gl = this.#gl;
    const { uniforms } = this.#water;
    this.#use(this.#water, view);
    gl.uniform1f(uniforms.time, view.time);
    gl.uniform2f(uniforms.own, view.ownX, view.ownY);
    gl.uniform3f(uniforms.tint, ...view.tint);
    gl.uniform1f(uniforms.size, SIZE);
    gl.uniform4fv(uniforms.halos, halos);
    gl.uniform3fv(uniforms.hues, hues);
    gl.disable(gl.BLEND);
    const count = MESH_COLUMNS * MESH_ROWS * 6;
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_SHORT, 0);
  }

  #drawSprites(view: View, { data, count }: Sprites): void {
    const gl = this.#gl;
    this.#use(this.#sprites, view);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#instances);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, data, 0, count * FLOATS);
    gl.enable(gl.BLEND);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }

  #use({ program, vertices, uniforms }: Pass, view: View): void {
    const gl = this.#gl;
    gl.useProgram(program);
    gl.bindVertexArray(vertices);
    gl.uniform2f(uniforms.centre, view.x, view.y);
    gl.uniform2f(uniforms.span, view.halfWidth, view.halfHeight);
  }
}

/** The points of a grid from -1 to 1. */
function meshPoints(): number[] {
  const points: number[] = [];
  for (let row = 0; row <= MESH_ROWS; row++)
    for (let column = 0; column <= MESH_COLUMNS; column++)
      points.push((column / MESH_COLUMNS) * 2 - 1, (row / MESH_ROWS) * 2 - 1);
  return points;
}

/** Two triangles for each cell of that grid. */
function meshCorners(): Uint16Array<ArrayBuffer> {
  const corners: number[] = [];
  const below = MESH_COLUMNS + 1;
  for (let row = 0; row < MESH_ROWS; row++)
    for (let column = 0; column < MESH_COLUMNS; column++) {
      const at = row * below + column;
      corners.push(at, at + 1, at + below, at + below, at + 1, at + below + 1);
    }
  return new Uint16Array(corners);
}
