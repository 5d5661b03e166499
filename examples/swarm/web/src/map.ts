// The small map: where fish are, where the brightest are, and where the player is.

import { cssHue } from "./colours.js";
import { MAP_CELLS, SIGHT, SIZE, type Leader } from "./shared.gen.js";

export class SeaMap {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #cells = new OffscreenCanvas(MAP_CELLS, MAP_CELLS);
  #drawnFrom: Uint8Array | null = null;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d")!;
  }

  /** Draw it. `own` is where the player is. */
  draw(
    crowds: Uint8Array,
    leaders: readonly Leader[],
    own: { x: number; y: number; hue: number } | undefined,
  ): void {
    const size = Math.round(
      this.#canvas.clientWidth * Math.min(devicePixelRatio, 2),
    );
    if (size === 0) return;
    if (this.#canvas.width !== size)
      this.#canvas.width = this.#canvas.height = size;
    if (crowds !== this.#drawnFrom) this.#drawCells(crowds);
    const context = this.#context;
    context.clearRect(0, 0, size, size);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.#cells, 0, 0, size, size);
    const scale = size / SIZE;
    for (const { x, y, hue } of leaders)
      this.#drawDot(x * scale, y * scale, size / 55, cssHue(hue));
    if (own === undefined) return;
    this.#drawDot(own.x * scale, own.y * scale, size / 36, "white");
    context.strokeStyle = "rgb(255 255 255 / 45%)";
    context.lineWidth = size / 150;
    context.beginPath();
    const sight = SIGHT * scale;
    context.arc(own.x * scale, own.y * scale, sight, 0, 2 * Math.PI);
    context.stroke();
  }

  #drawCells(crowds: Uint8Array): void {
    const image = new ImageData(MAP_CELLS, MAP_CELLS);
    crowds.forEach((crowd, cell) => {
      const shade = Math.min(1, crowd / 120);
      image.data.set([70, 190, 255, Math.round(shade * 220)], cell * 4);
    });
    this.#cells.getContext("2d")!.putImageData(image, 0, 0);
    this.#drawnFrom = crowds;
  }

  #drawDot(x: number, y: number, radius: number, colour: string): void {
    const context = this.#context;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }
}
