/**
 * Tests that need real programs, see installed.ts. Where one is missing, they are skipped with a printed reason; with CI=true
 * they fail instead, so that no pipeline passes by not looking.
 */
import { describe, it } from "vitest";
import { describeMissing, findPeers, type Peers } from "./installed.ts";

/**
 * A `describe` whose tests need the real programs: skipped with a printed reason where one is missing.
 * @param tests gets the programs' paths; where one is missing it only names the tests and does not run them
 */
export function describeWithPeers(situation: string, tests: (peers: Peers) => void): void {
  const { peers, missing } = findPeers();
  if (missing.length === 0) {
    describe(situation, () => {
      tests(peers);
    });
    return;
  }

  const reason = describeMissing(missing);
  if (process.env["CI"] === "true") {
    describe(situation, () => {
      it("finds the real programs it needs", () => {
        throw new Error(reason);
      });
    });
    return;
  }
  process.stderr.write(`skipped: ${situation}: ${reason}\n`);
  describe.skip(`${situation} (skipped: ${reason})`, () => {
    tests(peers);
  });
}
