/** What the admin listener needs to know. Made by config/, where the defaults live. */
import type { ListenAddress } from "../receive/options.ts";

export interface AdminOptions {
  /** null: there is none. */
  readonly listen: ListenAddress | null;
  /** What `Authorization: Bearer` has to bring; null: everybody who reaches it may use it, but for web pages. */
  readonly token: string | null;
}
