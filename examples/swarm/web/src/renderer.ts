// Draws a list of sprites over the water: two calls to WebGL a frame, whatever is in it.

import { SIZE } from "./shared.gen.js";
import {
  SPRITE_FRAGMENT,
  SPRITE_VERTEX,
  WATER_FRAGMENT,
  WATER_VERTEX,
} from "./shaders.js";

export type Colour = readonly [red: number, green: number, blue: number];

export const Shape = { FISH: 0, GLOW: 1, SPARK: 2, RING: 3, LIGHT: 4 } as const;

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

const MOST_SPRITES = 4_096;
const FLOATS = 10;
const MESH_COLUMNS = 48;
const MESH_ROWS = 30;
/** More pixels than this for each of the page's would cost more than anyone sees. */
const MOST_RATIO = 2;

/** The sprites of one frame, in one array that is used again for the next. */
export class Sprites {
  readonly data = new Float32Array(MOST_SPRITES * FLOATS);
  count = 0;

  clear(): void {
    this.count = 0;
  }

  /** Add one, with its place and half its length in units of the sea. What is too much is left out. */
  add(
    shape: number,
    x: number,
    y: number,
    size: number,
    [red, green, blue]: Colour,
    alpha: number,
    angle = 0,
    phase = 0,
  ): void {
    if (this.count === MOST_SPRITES) return;
    const { data } = this;
    const at = this.count++ * FLOATS;
    data[at] = x;
    data[at + 1] = y;
    data[at + 2] = angle;
    data[at + 3] = size;
    data[at + 4] = red;
    data[at + 5] = green;
    data[at + 6] = blue;
    data[at + 7] = alpha;
    data[at + 8] = shape;
    data[at + 9] = phase;
  }
}

interface Pass {
  readonly program: WebGLProgram;
  readonly vertices: WebGLVertexArrayObject;
  readonly uniforms: Readonly<Record<string, WebGLUniformLocation | null>>;
}

export class Renderer {
  readonly #canvas: HTMLCanvasElement;
  readonly #gl: WebGL2RenderingContext;
  #water!: Pass;
  #sprites!: Pass;
  #instances!: WebGLBuffer;
  #corners = 0;

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
    this.#water = this.#pass(WATER_VERTEX, WATER_FRAGMENT);
    const mesh = waterMesh();
    this.#corners = mesh.length / 2;
    this.#fill(this.#water, mesh);
    this.#sprites = this.#pass(SPRITE_VERTEX, SPRITE_FRAGMENT);
    this.#fill(this.#sprites, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]));
    this.#instances = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#instances);
    gl.bufferData(gl.ARRAY_BUFFER, MOST_SPRITES * FLOATS * 4, gl.DYNAMIC_DRAW);
    const { program } = this.#sprites;
    for (const [name, width, from] of [
      ["place", 4, 0],
      ["colour", 4, 4],
      ["look", 2, 8],
    ] as const) {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, width, gl.FLOAT, false, FLOATS * 4, from * 4);
      gl.vertexAttribDivisor(at, 1);
    }
  }

  #pass(vertex: string, fragment: string): Pass {
    const gl = this.#gl;
    const program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ] as const) {
      const shader = gl.createShader(type);
      if (shader === null) continue; // the context is lost, and will be built anew
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (
      !gl.getProgramParameter(program, gl.LINK_STATUS) &&
      !gl.isContextLost()
    ) {
      const told = gl.getProgramInfoLog(program);
      throw new Error(`the shaders do not link: ${told}`);
    }
    const names = ["centre", "span", "time", "own", "tint", "size"];
    const uniforms = Object.fromEntries(
      names.map((name) => [name, gl.getUniformLocation(program, name)]),
    );
    return { program, vertices: gl.createVertexArray(), uniforms };
  }

  /** Bind a pass's vertices, and give it its corners. */
  #fill({ program, vertices }: Pass, corners: Float32Array<ArrayBuffer>): void {
    const gl = this.#gl;
    gl.bindVertexArray(vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, corners, gl.STATIC_DRAW);
    const at = gl.getAttribLocation(program, "corner");
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0);
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
    const gl = this.#gl;
    if (gl.isContextLost()) return;
    this.#resize();
    gl.viewport(0, 0, this.#canvas.width, this.#canvas.height);
    gl.disable(gl.BLEND);
    this.#use(this.#water, view);
    gl.uniform2f(this.#water.uniforms["own"]!, view.ownX, view.ownY);
    gl.uniform3f(this.#water.uniforms["tint"]!, ...view.tint);
    gl.uniform1f(this.#water.uniforms["size"]!, SIZE);
    gl.drawArrays(gl.TRIANGLES, 0, this.#corners);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE);
    this.#use(this.#sprites, view);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#instances);
    gl.bufferSubData(
      gl.ARRAY_BUFFER,
      0,
      sprites.data,
      0,
      sprites.count * FLOATS,
    );
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, sprites.count);
  }

  #use({ program, vertices, uniforms }: Pass, view: View): void {
    const gl = this.#gl;
    gl.useProgram(program);
    gl.bindVertexArray(vertices);
    gl.uniform2f(uniforms["centre"]!, view.x, view.y);
    gl.uniform2f(uniforms["span"]!, view.halfWidth, view.halfHeight);
    gl.uniform1f(uniforms["time"]!, view.time);
  }
}

/** Two triangles for each cell of a grid from -1 to 1. */
function waterMesh(): Float32Array<ArrayBuffer> {
  const corners: number[] = [];
  for (let row = 0; row < MESH_ROWS; row++)
    for (let column = 0; column < MESH_COLUMNS; column++)
      for (const [right, down] of [
        [0, 0],
        [1, 0],
        [0, 1],
        [0, 1],
        [1, 0],
        [1, 1],
      ] as const)
        corners.push(
          ((column + right) / MESH_COLUMNS) * 2 - 1,
          ((row + down) / MESH_ROWS) * 2 - 1,
        );
  return new Float32Array(corners);
}
