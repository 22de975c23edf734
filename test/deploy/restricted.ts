/** What containers of ours may not do: Kubernetes' restricted profile, a root file system that is read-only, and no API. */
import { expect } from "vitest";
import { onlyContainer, type Workload } from "./manifests.ts";

export function expectRestricted(workload: Workload): void {
  const { spec } = workload.spec.template;
  expect(spec).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  });
  expect(spec.securityContext.runAsUser).toBeGreaterThan(0);
  expect(onlyContainer(workload).securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
}
