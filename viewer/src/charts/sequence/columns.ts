/** Many marks on few pixels: what falls on the same pixel becomes one mark, and no extreme is lost. */

/** Takes a vertical run of pixels in a column, both ends included. */
export type Paint = (column: number, top: number, bottom: number) => void;

/**
 * Vertical bars, given column by column from left to right. Bars of one column that touch become one, so that what is
 * painted is bounded by the picture's pixels and not by the number of bars.
 */
export class Bars {
  private column = Number.NaN;
  private low = Number.POSITIVE_INFINITY;
  private high = Number.NEGATIVE_INFINITY;
  /** +1 where a bar begins, −1 after its end. */
  private readonly edges: Int32Array;

  constructor(
    private readonly height: number,
    private readonly paint: Paint,
  ) {
    this.edges = new Int32Array(height + 2);
  }

  /** A bar between two heights, at least `least` pixels high; what is outside of the picture is cut. */
  add(column: number, one: number, other: number, least: number): void {
    if (column !== this.column) {
      this.flush();
      this.column = column;
    }
    let top = Math.round(Math.min(one, other));
    let bottom = Math.round(Math.max(one, other)) - 1;
    const missing = least - (bottom - top + 1);
    if (missing > 0) {
      top -= Math.floor(missing / 2);
      bottom = top + least - 1;
    }
    if (bottom < 0 || top >= this.height) return;
    if (top < 0) top = 0;
    if (bottom >= this.height) bottom = this.height - 1;
    this.edges[top]!++;
    this.edges[bottom + 1]!--;
    if (top < this.low) this.low = top;
    if (bottom > this.high) this.high = bottom;
  }

  /** Paints what is left. */
  flush(): void {
    let depth = 0;
    let begin = -1;
    for (let y = this.low; y <= this.high + 1; y++) {
      depth += this.edges[y]!;
      this.edges[y] = 0;
      if (depth > 0 && begin < 0) begin = y;
      if (depth === 0 && begin >= 0) {
        this.paint(this.column, begin, y - 1);
        begin = -1;
      }
    }
    this.low = Number.POSITIVE_INFINITY;
    this.high = Number.NEGATIVE_INFINITY;
  }
}

/** Takes a filled box: its left upper corner, its width and height. */
export type Fill = (x: number, y: number, width: number, height: number) => void;

/**
 * A line that stays at one height until it jumps to the next, given from left to right. In a column it shows from its
 * lowest to its highest height, and goes on from its last.
 */
export class Stairs {
  private column = Number.NaN;
  private low = 0;
  private high = 0;
  private last = Number.NaN;

  constructor(
    private readonly fill: Fill,
    private readonly thickness: number,
  ) {}

  /** From `column` on the line is at height `y`. */
  to(column: number, y: number): void {
    const at = Math.round(y);
    if (Number.isNaN(this.last)) {
      this.start(column, at);
    } else if (column === this.column) {
      if (at < this.low) this.low = at;
      if (at > this.high) this.high = at;
    } else {
      this.riser();
      if (at !== this.last) {
        this.tread(column);
        const last = this.last;
        this.start(column, Math.min(last, at));
        this.high = Math.max(last, at);
      }
    }
    this.last = at;
  }

  /** Nobody knows where the line is until it goes on. */
  lift(column: number): void {
    this.end(column);
    this.last = Number.NaN;
  }

  /** The line ends at `column`. */
  end(column: number): void {
    if (Number.isNaN(this.last)) return;
    this.riser();
    this.tread(column);
  }

  private start(column: number, at: number): void {
    this.column = column;
    this.low = at;
    this.high = at;
  }

  private riser(): void {
    if (this.high > this.low)
      this.fill(this.column, this.low, this.thickness, this.high - this.low + this.thickness);
    this.low = this.last;
    this.high = this.last;
  }

  private tread(until: number): void {
    const width = until - this.column + this.thickness;
    if (width > 0) this.fill(this.column, this.last, width, this.thickness);
  }
}
