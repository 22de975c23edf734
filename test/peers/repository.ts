/** Where the repository is, for sources that run as they are and built: dist has no package.json. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

export const REPOSITORY = above(import.meta.dirname);

/** The built command line. */
export const MAIN = join(REPOSITORY, "dist/cmd/main.js");

function above(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : above(dirname(folder));
}
