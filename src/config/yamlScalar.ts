/**
 * What the YAML library of VictoriaMetrics makes of a scalar without quotes, written as text again.
 *
 * vmagent takes a regex as any value and turns numbers and truth values into text: `1.0` becomes 1 there, and `yes` becomes
 * true.
 */

const TRUE = /^(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE)$/;
const FALSE = /^(?:n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$/;
const INFINITY = /^([-+]?)\.(?:inf|Inf|INF)$/;
const NOT_A_NUMBER = /^\.(?:nan|NaN|NAN)$/;
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const MAX_INTEGER = 2n ** 63n - 1n;
const MAX_UNSIGNED = 2n ** 64n - 1n;

/** Whether it is true or false there, as `yes` and `off` are. */
export function isTruthValue(written: string): boolean {
  return TRUE.test(written) || FALSE.test(written);
}

/** @returns null for integers that vmagent takes for no text */
export function resolvedScalar(written: string): string | null {
  if (TRUE.test(written)) return "true";
  if (FALSE.test(written)) return "false";
  if (!/^[-+.0-9]/.test(written)) return written;
  if (NOT_A_NUMBER.test(written)) return "NaN";
  const [infinity, signOfInfinity] = INFINITY.exec(written) ?? [];
  if (infinity !== undefined) return signOfInfinity === "-" ? "-Inf" : "+Inf";
  const digits = written.replaceAll("_", "");
  const [, sign = "", magnitude] = INTEGER.exec(digits) ?? [];
  if (magnitude !== undefined) {
    const value = BigInt(magnitude.replace(/^0(?=[0-7])/, "0o")) * (sign === "-" ? -1n : 1n);
    if (value >= -MAX_INTEGER - 1n && value <= MAX_INTEGER) return value.toString();
    if (sign === "" && value <= MAX_UNSIGNED) return null;
  }
  if (!FLOAT.test(digits) || !Number.isFinite(Number(digits))) return written;
  return plainDecimal(Number(digits));
}

/** The shortest digits that mean the number, without an exponent. */
function plainDecimal(value: number): string {
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [digits = "", exponent] = Math.abs(value).toString().split("e");
  if (exponent === undefined) return sign + digits;
  const [whole = "", fraction = ""] = digits.split(".");
  const point = whole.length + Number(exponent);
  const all = whole + fraction;
  return point <= 0 ? `${sign}0.${"0".repeat(-point)}${all}` : sign + all.padEnd(point, "0");
}
