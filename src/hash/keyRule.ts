/** What a label-set key is made of: which labels, and how they are put together. */

/**
 * How the labels of a key are put together before they are hashed.
 *
 * - `pairs`: labels with non-empty values, sorted bytewise by name, each as name 0xFF value 0xFF. 0xFF never occurs in
 *   UTF-8, so no two label sets give the same bytes.
 * - `flat`: the old Go gateway's: all names and values in one list, sorted bytewise, concatenated. Kept so that its users
 *   can move without moving their series; {a="b"} and {b="a"} collide.
 */
export type KeyFormat = "pairs" | "flat";

/**
 * Which labels take part. The task label never does, with one exception: a `flat` key `by` a list that names the task
 * label, as old gateway files may, hashes the task that stage 1 chose.
 */
export type KeyRule =
  | { readonly kind: "all" }
  | { readonly kind: "by"; readonly names: readonly string[] }
  | { readonly kind: "without"; readonly names: readonly string[] };
