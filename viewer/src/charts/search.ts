/** Searching by halves in sorted columns. */

/** The first row whose value is `value` or more; the column's length if none is. */
export function firstAtLeast(column: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first row whose value is more than `value`; the column's length if none is. */
export function firstAfter(column: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((column[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row whose value is `value`; -1 if none is. */
export function rowOf(column: ArrayLike<number>, value: number): number {
  const row = firstAtLeast(column, value);
  return column[row] === value ? row : -1;
}
