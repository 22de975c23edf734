/** Finds the real programs that some tests need: `bash test/peers/install.sh` puts them in .peers, or they are on the PATH. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { REPOSITORY } from "./repository.ts";

const INSTALLED = join(REPOSITORY, ".peers/bin");
const INSTALL_COMMAND = "bash test/peers/install.sh";

const PEER_NAMES = ["prometheus", "vmagent", "victoria-metrics"] as const;
export type PeerName = (typeof PEER_NAMES)[number];

/** Paths of the executables. */
export type Peers = Readonly<Record<PeerName, string>>;

/** All of them; the path of one that is missing is empty. */
export function findPeers(): { readonly peers: Peers; readonly missing: readonly PeerName[] } {
  const peers: Record<PeerName, string> = { prometheus: "", vmagent: "", "victoria-metrics": "" };
  const missing: PeerName[] = [];
  for (const name of PEER_NAMES) {
    const path = findPeer(name);
    if (path === undefined) missing.push(name);
    else peers[name] = path;
  }
  return { peers, missing };
}

/** What to do about it. */
export function describeMissing(missing: readonly PeerName[]): string {
  return `${missing.join(", ")} not found in .peers/bin or on the PATH; install with: ${INSTALL_COMMAND}`;
}

/** The path of one; undefined if it is missing. */
export function findPeer(name: PeerName): string | undefined {
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
