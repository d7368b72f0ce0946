/** Which rows of a long list are worth drawing: those in sight, and some beyond so that fast scrolling shows no gaps. */
export interface Slice {
  first: number;
  /** Behind the last. */
  end: number;
}

const BEYOND = 12;

/**
 * `top` is where the list's first row is in the viewport, in px (negative once it is scrolled away).
 */
export function inSight(rows: number, rowHeight: number, top: number, viewportHeight: number): Slice {
  const first = Math.floor(-top / rowHeight) - BEYOND;
  const end = Math.ceil((viewportHeight - top) / rowHeight) + BEYOND;
  const clamp = (n: number) => Math.min(Math.max(n, 0), rows);
  return { first: clamp(first), end: clamp(end) };
}
