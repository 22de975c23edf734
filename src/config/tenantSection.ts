/** `routes[].tenant`: what becomes of the tenant that a request names in a header. */
import type { TenantOptions } from "../route/options.ts";
import { tenantHeader } from "./httpHeaders.ts";
import { flag, ownLabel } from "./scalars.ts";
import type { Reader, Section } from "./section.ts";

/** @param taskLabel of the same route, which carries something else; null for none */
export function readTenant(tenant: Section, taskLabel: string | null): TenantOptions {
  const header = tenant.optional("header", tenantHeader, "x-scope-orgid");
  const label = tenant.optional("label", labelOrNone, "");
  const pass = tenant.optional("pass", flag, false);
  if (label !== "" && label === taskLabel) {
    const message = `want another label; ${label} is the task label of this route`;
    tenant.problems.error(tenant.placeOf("label"), message);
  }
  // Who writes label: "" or pass: false as well knows that nothing comes of it.
  if (tenant.has("header") && !tenant.has("label") && !tenant.has("pass")) {
    const message = "has no effect without label, for the series, or pass: true, for the upstreams";
    tenant.problems.warning(tenant.placeOf("header"), message);
  }
  return { header, label: label === "" ? null : label, pass };
}

const labelOrNone: Reader<string> = (node, problems) => {
  return node.kind === "text" && node.text === "" ? "" : ownLabel(node, problems);
};
