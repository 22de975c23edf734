/**
 * Tells when files have become others.
 *
 * It looks at them again and again, by name: that sees what notifications of the system miss on network file systems, in
 * containers, and where a name leads to another file, as when Kubernetes swaps the link under a mounted ConfigMap. A change
 * is told once it looks the same twice, so that a file is not read while somebody writes it.
 */
import { stat } from "node:fs/promises";

/** A change is told after one to two of these. */
const LOOK_EVERY_MS = 1_000;
const ABSENT = "absent";

export class FileWatch {
  readonly #everyMs: number;
  readonly #onChange: () => void;
  #paths: readonly string[];
  /** As they were when last told; null before the first look. */
  #told: string | null = null;
  /** As they were at the last look. */
  #seen: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /**
   * @param paths    that are there or not
   * @param onChange called when their content, or what their names lead to, may be another; the first time when they are as
   *                 they were at the start, too, since whoever has read them may have done so before a change
   */
  constructor(paths: readonly string[], onChange: () => void, everyMs = LOOK_EVERY_MS) {
    this.#paths = paths;
    this.#onChange = onChange;
    this.#everyMs = everyMs;
    this.#schedule();
  }

  /** Watches others from now on. */
  watch(paths: readonly string[]): void {
    this.#paths = paths;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        this.#schedule();
      });
    }, this.#everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const now = (await Promise.all(this.#paths.map(lookAt))).join("\n");
    const isSettled = now === this.#seen;
    this.#seen = now;
    if (this.#stopped || !isSettled || now === this.#told) return;
    this.#told = now;
    this.#onChange();
  }
}

/** What changes when a file's content does, or when its name leads to another file. */
async function lookAt(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [path, dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ABSENT;
    return `${path} ${code}`;
  }
}
