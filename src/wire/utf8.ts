/** Whether bytes are text. */
import { isUtf8 } from "node:buffer";

/** Whether bytes[start, end) are UTF-8. */
export function isUtf8Range(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    // Nearly all labels are ASCII, and a view for each would cost more than this loop.
    if ((bytes[i] ?? 0) >= 0x80) return isUtf8(bytes.subarray(start, end));
  }
  return true;
}
