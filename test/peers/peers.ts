/**
 * Finds the real programs that some tests need, and says what to do when one is missing.
 *
 * They come from `bash test/peers/install.sh` (in .peers) or from the PATH. Where one is missing, the tests that need it are
 * skipped with a printed reason; with CI=true they fail instead, so that no pipeline passes by not looking.
 */
import { accessSync, constants } from "node:fs";
import { delimiter, join, resolve } from "node:path";

import { describe, it } from "vitest";

const INSTALLED = resolve(import.meta.dirname, "../../.peers/bin");
const INSTALL_COMMAND = "bash test/peers/install.sh";

const PEER_NAMES = ["prometheus", "vmagent", "victoria-metrics"] as const;
export type PeerName = (typeof PEER_NAMES)[number];

/** Paths of the executables. */
export type Peers = Readonly<Record<PeerName, string>>;

/**
 * A `describe` whose tests need the real programs: skipped with a printed reason where one is missing.
 * @param tests gets the programs' paths; where one is missing it only names the tests and does not run them
 */
export function describeWithPeers(situation: string, tests: (peers: Peers) => void): void {
  const peers: Record<PeerName, string> = { prometheus: "", vmagent: "", "victoria-metrics": "" };
  const missing: PeerName[] = [];
  for (const name of PEER_NAMES) {
    const path = findPeer(name);
    if (path === undefined) missing.push(name);
    else peers[name] = path;
  }
  if (missing.length === 0) {
    describe(situation, () => {
      tests(peers);
    });
    return;
  }

  const reason = `${missing.join(", ")} not found in .peers/bin or on the PATH; install with: ${INSTALL_COMMAND}`;
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

function findPeer(name: PeerName): string | undefined {
  const folders = [INSTALLED, ...(process.env["PATH"] ?? "").split(delimiter)];
  return folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Not there, or not for us: both mean that it cannot be used.
    return false;
  }
}
