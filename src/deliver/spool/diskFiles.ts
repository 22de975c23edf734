/** The files of the spool on a real disk. */
import type { SpoolFiles } from "./files.ts";

export const diskFiles: SpoolFiles = {
  open: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  list: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  makeFolder: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  syncFolder: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  rename: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  remove: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  removeFolder: (path) => Promise.reject(new Error(`not built yet ${path}`)),
  lock: (path) => Promise.reject(new Error(`not built yet ${path}`)),
};
