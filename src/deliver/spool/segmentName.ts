/**
 * Names of files and folders of the spool.
 *
 * A segment's name tells its stream, its place among the segments of the upstream, which segment of its stream came before it
 * (0: the stream was empty), and the nonce of its records:
 * `<lane>-<tenant>-<sequence>-<previous>-<nonce>.segment`, where the tenant is `none` or a hash of its name.
 */
import { createHash } from "node:crypto";
import type { LaneId } from "../lane.ts";

const SEGMENT =
  /^(\d{1,10}-(?:none|[0-9a-f]{32}))-(\d{12,16})-(\d{12,16})-([0-9a-f]{16})\.segment(\.damaged)?$/;
const SEQUENCE_DIGITS = 12;

export interface SegmentName {
  /** See streamKey(). */
  readonly stream: string;
  readonly sequence: number;
  readonly previous: number;
  readonly nonce: string;
}

export const DAMAGED_SUFFIX = ".damaged";

export function streamKey({ number, tenant }: LaneId): string {
  return `${number}-${tenant === null ? "none" : shortHash(tenant)}`;
}

export function formatSegmentName({ stream, sequence, previous, nonce }: SegmentName): string {
  return `${stream}-${padded(sequence)}-${padded(previous)}-${nonce}.segment`;
}

/** @returns null for what is no segment's name; `isAside` for a damaged one that is only kept */
export function parseSegmentName(name: string): (SegmentName & { readonly isAside: boolean }) | null {
  const [, stream, sequence, previous, nonce, suffix] = SEGMENT.exec(name) ?? [];
  if (stream === undefined || nonce === undefined) return null;
  return {
    stream,
    sequence: Number(sequence),
    previous: Number(previous),
    nonce,
    isAside: suffix !== undefined,
  };
}

/** Longer escaped names would not leave room for what the file system allows. */
const LONGEST_FOLDER_NAME = 160;

/** A folder name for any name of the configuration: different for different names, and itself for usual ones. */
export function escapeName(name: string): string {
  let escaped = "";
  for (const byte of Buffer.from(name, "utf8")) {
    const character = String.fromCharCode(byte);
    const isSafe = /[A-Za-z0-9_-]/.test(character) || (character === "." && escaped !== "");
    escaped += isSafe ? character : `%${byte.toString(16).padStart(2, "0")}`;
  }
  if (escaped === "") return "%";
  if (escaped.length <= LONGEST_FOLDER_NAME) return escaped;
  return `${escaped.slice(0, LONGEST_FOLDER_NAME - 40).replace(/%.?$/, "")}%%${shortHash(name)}`;
}

function shortHash(name: string): string {
  return createHash("sha256").update(name, "utf8").digest("hex").slice(0, 32);
}

function padded(sequence: number): string {
  return String(sequence).padStart(SEQUENCE_DIGITS, "0");
}
