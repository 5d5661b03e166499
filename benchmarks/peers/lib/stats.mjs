/** Null stays null. */
export const round3 = (value) => (value == null ? null : Math.round(value * 1000) / 1000);

/** The value below which a share of sorted values lies; null where there are none. */
export const quantile = (sorted, share) =>
  sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

/** Half-way between the middle two where their number is even; null where there are none. */
export function median(values) {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function summary(values) {
  const sorted = Float64Array.from(values).sort();
  const [p50, p99, max] = [quantile(sorted, 0.5), quantile(sorted, 0.99), sorted.at(-1)];
  return { n: sorted.length, p50: round3(p50), p99: round3(p99), max: round3(max) };
}
