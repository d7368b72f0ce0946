/** Which rows of a long table are on screen. */

/** Height of a row, CSS pixels. */
export const ROW = 22;
/** Browsers cannot lay out more pixels than some millions below each other; beyond these, scrolling is scaled. */
const MOST_PIXELS = 8_000_000;

/** The height of what is scrolled. */
export function scrolledHeight(rows: number): number {
  return Math.min(rows * ROW, MOST_PIXELS);
}

/** The first row in view, a fraction where it is cut, for a scrolled offset. */
export function firstRow(scrolled: number, rows: number, height: number): number {
  const room = scrolledHeight(rows) - height;
  if (room <= 0) return 0;
  return (Math.min(Math.max(scrolled, 0), room) / room) * (rows - height / ROW);
}

/** Where to scroll for `first` to be the first row in view. */
export function scrollFor(first: number, rows: number, height: number): number {
  const most = rows - height / ROW;
  if (most <= 0) return 0;
  return (Math.min(Math.max(first, 0), most) / most) * (scrolledHeight(rows) - height);
}

/** The first row in view after moving as little as needed for `row` to be seen whole; far rows come to the middle. */
export function bringIntoView(row: number, first: number, height: number): number {
  const shown = height / ROW;
  if (row >= first && row + 1 <= first + shown) return first;
  const isFar = row < first - shown || row > first + 2 * shown;
  if (isFar) return row - shown / 2;
  return row < first ? row : row + 1 - shown;
}
