/**
 * Makes the folder that the image holds, without Docker: what the Dockerfile copies is copied and built, and nothing else is
 * there. Only the packages are not installed anew, but taken from this repository's node_modules.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { copiesOf, lastOf, readStages, REPOSITORY, textsOf } from "./dockerfile.ts";

/**
 * @param work  an empty folder for the build
 * @param image an empty folder, which becomes the image's working directory
 */
export async function makeImageFolder(work: string, image: string): Promise<void> {
  const [build, final] = readStages();
  if (build === undefined || final === undefined) throw new Error("want a build stage and a final stage");

  for (const { sources, destination } of copiesOf(build))
    await copyAll(REPOSITORY, sources, work, destination);
  await symlink(join(REPOSITORY, "node_modules"), join(work, "node_modules"));
  await promisify(execFile)("npm", ["run", "--silent", "build"], { cwd: work });

  for (const { from, sources, destination } of copiesOf(final)) {
    if (from === undefined) {
      await copyAll(REPOSITORY, sources, image, destination);
      continue;
    }
    const built = sources.map((source) => relative(lastOf(build, "WORKDIR"), source));
    if (built.includes("node_modules")) await copyProductionPackages(join(image, destination));
    else await copyAll(work, built, image, destination);
  }
  for (const command of textsOf(final, "RUN")) {
    // Only the user of the image may be given files, and here everything is this process' own.
    const [, folder] = /^install -d .* (\S+)$/.exec(command) ?? [];
    if (folder === undefined) throw new Error(`cannot do this here: ${command}`);
    await mkdir(join(image, folder), { recursive: true });
  }
}

/** As COPY does it: files keep their names in a folder `./`, a folder's content goes into the destination. */
async function copyAll(
  from: string,
  sources: readonly string[],
  to: string,
  destination: string,
): Promise<void> {
  for (const source of sources) {
    const target = destination === "./" ? join(to, source) : join(to, destination);
    await cp(join(from, source), target, { recursive: true });
  }
}

/** What `npm prune --omit=dev` leaves: the packages that the lock file does not mark as for development only. */
async function copyProductionPackages(target: string): Promise<void> {
  const lock = JSON.parse(await readFile(join(REPOSITORY, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  for (const [path, { dev }] of Object.entries(lock.packages)) {
    if (path === "" || dev === true) continue;
    const folder = join(target, relative("node_modules", path));
    await mkdir(dirname(folder), { recursive: true });
    await cp(join(REPOSITORY, path), folder, {
      recursive: true,
      // Packages inside have entries of their own.
      filter: (file) => !relative(join(REPOSITORY, path), file).split("/").includes("node_modules"),
    });
  }
}
