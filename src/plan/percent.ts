/** Shares for a person. */
import type { Share } from "./report.ts";

/** As `25.0 %`, or `25.0 % ± 0.3 %` where it is not exact: one standard error. */
export function percent({ share, standard_error }: Share): string {
  const error = standard_error === 0 ? "" : ` ± ${digits(standard_error)} %`;
  return `${digits(share)} %${error}`;
}

/** In hundredths, with as many digits as leave something of a small one. */
function digits(share: number): string {
  const hundredths = share * 100;
  return hundredths.toFixed(hundredths > 0 && hundredths < 0.95 ? 2 : 1);
}
