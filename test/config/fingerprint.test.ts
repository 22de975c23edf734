import { describe, expect, it } from "vitest";
import { fingerprint, publicHash } from "../../src/config/fingerprint.ts";
import { configOf } from "../system/gatewayRig.ts";

const RULES = [
  "{source_labels: [job], regex: a, action: keep}",
  "{source_labels: [job], modulus: 18446744073709551615, target_label: m, action: hashmod}",
];

function config(
  options: { rules?: string; upstream?: string; top?: string } = {},
): ReturnType<typeof configOf> {
  const { rules = "", upstream = "", top = "" } = options;
  return configOf(
    `${top}\nroutes: [{name: r, relabel_configs: [${rules}], upstreams: [{name: a, url: "http://a/w"${upstream}}]}]`,
  );
}

describe("two configurations", () => {
  it.each([
    { name: "a rule", other: config({ rules: RULES.join(", ") }) },
    { name: "a header", other: config({ upstream: ", headers: {X-A: b}" }) },
    { name: "a limit", other: config({ top: "limits: {max_labels: 7}" }) },
  ])("that differ in $name have other fingerprints", ({ other }) => {
    expect(fingerprint(other)).not.toBe(fingerprint(config()));
  });

  it("that say the same have one fingerprint and one hash, however they are written", () => {
    const rules = RULES.join(", ");
    const [one, other] = [config({ rules }), config({ rules, top: "# the same\nlisten: 127.0.0.1:8080" })];
    expect(fingerprint(one)).toBe(fingerprint(other));
    expect(publicHash(one)).toBe(publicHash(other));
  });

  it("that differ in a secret alone have one hash, which everybody may see", () => {
    const secret = (password: string): string =>
      publicHash(config({ upstream: `, basic_auth: {username: u, password: ${password}}` }));
    expect(secret("a")).toBe(secret("b"));
    expect(secret("a")).toMatch(/^[0-9a-f]{16}$/);
    expect(publicHash(config({ rules: RULES[0] ?? "" }))).not.toBe(publicHash(config()));
  });
});
