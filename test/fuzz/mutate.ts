/** Damages done to requests: to their bytes as they are, or to their fields with the lengths around them set right. */
import { doubleField, fixed32Field, nested, varint, varintField } from "../wire/handmade.ts";
import { type Field, fieldsOf, replaceField } from "./fields.ts";
import type { Random } from "./random.ts";

type BytesDamage = (bytes: Uint8Array, random: Random) => Uint8Array;

const EDGE_BYTES = [0x00, 0x01, 0x02, 0x07, 0x0a, 0x12, 0x7f, 0x80, 0x81, 0xfe, 0xff] as const;
const SEVERAL = 4;

/** One to a few damages to any bytes. */
export function damageBytes(bytes: Uint8Array, random: Random): Uint8Array {
  let damaged = bytes;
  do damaged = random.pick(BYTES_DAMAGES)(damaged, random);
  while (random.once(SEVERAL));
  return damaged;
}

function withByte(bytes: Uint8Array, at: number, byte: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = byte;
  return copy;
}

function spliced(bytes: Uint8Array, start: number, end: number, between: Uint8Array): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), between, bytes.subarray(end)]);
}

const flipBit: BytesDamage = (bytes, random) => {
  const at = random.below(bytes.length);
  return withByte(bytes, at, (bytes[at] ?? 0) ^ (1 << random.below(8)));
};

const setByte: BytesDamage = (bytes, random) =>
  withByte(bytes, random.below(bytes.length), random.once(2) ? random.below(256) : random.pick(EDGE_BYTES));

/** A byte that is taken for a length becomes a little longer or shorter. */
const shiftByte: BytesDamage = (bytes, random) => {
  const at = random.below(bytes.length);
  return withByte(bytes, at, (bytes[at] ?? 0) + random.pick([-2, -1, 1, 2]));
};

const insertBytes: BytesDamage = (bytes, random) => {
  const at = random.below(bytes.length + 1);
  return spliced(bytes, at, at, random.bytes(1 + random.below(8)));
};

const deleteBytes: BytesDamage = (bytes, random) => {
  const at = random.below(bytes.length);
  return spliced(bytes, at, at + 1 + random.below(16), new Uint8Array(0));
};

const duplicateRange: BytesDamage = (bytes, random) => {
  const from = random.below(bytes.length);
  const to = random.below(bytes.length + 1);
  return spliced(bytes, to, to, bytes.subarray(from, from + 1 + random.below(64)));
};

const overwriteRange: BytesDamage = (bytes, random) => {
  const from = random.below(bytes.length);
  const to = random.below(bytes.length);
  const range = bytes.subarray(from, from + 1 + random.below(32));
  return spliced(bytes, to, to + range.length, range);
};

const truncate: BytesDamage = (bytes, random) => bytes.subarray(0, random.below(bytes.length + 1));

const BYTES_DAMAGES = [
  flipBit,
  setByte,
  shiftByte,
  insertBytes,
  deleteBytes,
  duplicateRange,
  overwriteRange,
  truncate,
] as const;

export interface DamagedRequest {
  readonly plain: Uint8Array;
  /** Whether it is still a request that has to be taken, if an odd one. */
  readonly isSound: boolean;
}

/** Answers what comes in the place of a field. */
type FieldDamage = (plain: Uint8Array, field: Field, random: Random) => Uint8Array;

/** One to a few damages to the fields of a request. */
export function damageFields(request: Uint8Array, random: Random): DamagedRequest {
  let plain = request;
  let isSound = true;
  do {
    // What is no request any more has no fields to find.
    const fields = isSound ? fieldsOf(plain) : [];
    const field = fields[random.below(fields.length)];
    if (field === undefined) break;
    const staysSound = random.once(2);
    const damage = random.pick(staysSound ? SOUND_DAMAGES : UNSOUND_DAMAGES);
    plain = replaceField(plain, field, damage(plain, field, random));
    isSound = staysSound;
  } while (random.once(SEVERAL));
  return { plain, isSound };
}

const bytesOf = (plain: Uint8Array, { start, end }: Field): Uint8Array => plain.subarray(start, end);

const remove: FieldDamage = () => new Uint8Array(0);

const repeat: FieldDamage = (plain, field) => Buffer.concat([bytesOf(plain, field), bytesOf(plain, field)]);

/** The last of a repeated string counts, so this changes nothing but the bytes. */
const putOtherTextBefore: FieldDamage = (plain, field, random) => {
  if (field.kind !== "text") return repeat(plain, field, random);
  const other = nested(field.number, random.pick(["", "x", "stream_task_id", "é"]));
  return Buffer.concat([other, bytesOf(plain, field)]);
};

/** A text becomes the task label's name, so that a label may turn into one from outside, or into a second one. */
const renameToTaskLabel: FieldDamage = (plain, field) =>
  field.kind === "text" && field.number === 1 ? nested(1, "stream_task_id") : bytesOf(plain, field);

const putUnknownBefore: FieldDamage = (plain, field, random) => {
  const number = 20 + random.below(2 ** random.below(25));
  const unknown = random.pick([
    varintField(number, random.below(2 ** 32)),
    doubleField(number),
    fixed32Field(number),
    nested(number, random.bytes(random.below(20))),
  ]);
  return Buffer.concat([unknown, bytesOf(plain, field)]);
};

/** A varint in more bytes than it needs: of a length up to the five that every decoder reads, of a value up to ten. */
const padVarint: FieldDamage = (plain, field, random) =>
  field.kind === "varint"
    ? withPaddedValue(plain, field, 10)
    : withPaddedLength(plain, field, 1 + random.below(5));

/** The same up to twelve bytes: more than a varint may have. */
const padVarintTooFar: FieldDamage = (plain, field, random) =>
  field.kind === "varint"
    ? withPaddedValue(plain, field, 11 + random.below(2))
    : withPaddedLength(plain, field, 6 + random.below(7));

function withPaddedValue(plain: Uint8Array, field: Field, bytes: number): Uint8Array {
  const valueBytes = field.end - field.start - varint(field.number * 8).length;
  const padded = bytesOf(plain, field);
  if (valueBytes >= bytes) return padded;
  const more = withByte(padded, padded.length - 1, (padded.at(-1) ?? 0) | 0x80);
  return Buffer.concat([more, new Uint8Array(bytes - valueBytes - 1).fill(0x80), Uint8Array.of(0)]);
}

function withPaddedLength(plain: Uint8Array, field: Field, bytes: number): Uint8Array {
  if (field.lengthAt === null || field.contentAt === null) return bytesOf(plain, field);
  const length = varint(field.end - field.contentAt, bytes);
  return Buffer.concat([
    plain.subarray(field.start, field.lengthAt),
    length,
    plain.subarray(field.contentAt, field.end),
  ]);
}

const changeTag: FieldDamage = (plain, field, random) =>
  withByte(
    bytesOf(plain, field),
    0,
    random.once(2) ? random.below(256) : (plain[field.start] ?? 0) ^ (1 << random.below(7)),
  );

const changeLength: FieldDamage = (plain, field, random) => {
  if (field.lengthAt === null) return damageBytes(bytesOf(plain, field), random);
  const at = field.lengthAt - field.start;
  const length = random.once(2)
    ? random.pick(LENGTHS)
    : varint(Math.abs((plain[field.lengthAt] ?? 0) + random.below(5) - 2));
  return spliced(bytesOf(plain, field), at, (field.contentAt ?? 0) - field.start, length);
};

const LENGTHS = [0, 1, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 35, -1].map((length) =>
  varint(length),
) as [Buffer, ...Buffer[]];

const damageContent: FieldDamage = (plain, field, random) => damageBytes(bytesOf(plain, field), random);

/** Another field of the request, whatever its message, in front. */
const graft: FieldDamage = (plain, field, random) => {
  const fields = fieldsOf(plain);
  const other = fields[random.below(fields.length)] ?? field;
  return Buffer.concat([bytesOf(plain, other), bytesOf(plain, field)]);
};

const SOUND_DAMAGES = [
  remove,
  repeat,
  putOtherTextBefore,
  renameToTaskLabel,
  putUnknownBefore,
  padVarint,
] as const;
const UNSOUND_DAMAGES = [padVarintTooFar, changeTag, changeLength, damageContent, graft] as const;
