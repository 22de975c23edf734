// hashes: the two hash functions of src/hash in C, over the same keys as hashes.ts, to compare their times with.
//   hashes JUMP_KEYS BUCKETS FNV_KEYS BYTES_PER_KEY BYTES_PER_PIECE ROUNDS
// Prints one JSON line: the shortest time per key of all rounds in nanoseconds, and a checksum over all answers.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

// Lamping & Veach, arXiv:1406.2294, figure 1.
static int32_t jump(uint64_t key, int32_t buckets) {
  int64_t bucket = -1, next = 0;
  while (next < buckets) {
    bucket = next;
    key = key * 2862933555777941757ULL + 1;
    next = (bucket + 1) * ((double)(1LL << 31) / (double)((key >> 33) + 1));
  }
  return bucket;
}

static uint32_t fnv1a32(const uint8_t *bytes, size_t length, uint32_t hash) {
  for (size_t i = 0; i < length; i++) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

static uint32_t jump_all(const uint32_t *keys, size_t count, int32_t buckets) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += jump(keys[i], buckets);
  return sum;
}

// A key is hashed piece by piece, as the names and values of a label set are.
static uint32_t fnv_all(const uint8_t *bytes, size_t count, size_t per_key, size_t per_piece) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < per_key; at += per_piece) hash = fnv1a32(bytes + i * per_key + at, per_piece, hash);
    sum += hash;
  }
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 7) return fprintf(stderr, "usage: see the first lines of hashes.c\n"), 2;
  size_t jump_keys = atol(argv[1]), fnv_keys = atol(argv[3]), per_key = atol(argv[4]), per_piece = atol(argv[5]);
  int buckets = atoi(argv[2]), rounds = atoi(argv[6]);
  uint32_t *keys = malloc(jump_keys * sizeof *keys), state = 1;
  uint8_t *bytes = malloc(fnv_keys * per_key);
  for (size_t i = 0; i < jump_keys; i++) keys[i] = state = state * 1664525u + 1013904223u;
  for (size_t i = 0; i < fnv_keys * per_key; i++) bytes[i] = (state = state * 1664525u + 1013904223u) >> 24;

  double jump_best = 1e9, fnv_best = 1e9;
  uint32_t jump_sum = 0, fnv_sum = 0;
  for (int round = 0; round < rounds; round++) {
    double start = now();
    jump_sum = jump_all(keys, jump_keys, buckets);
    double between = now();
    fnv_sum = fnv_all(bytes, fnv_keys, per_key, per_piece);
    double end = now();
    if (between - start < jump_best) jump_best = between - start;
    if (end - between < fnv_best) fnv_best = end - between;
  }
  printf("{\"jumpNs\":%.3f,\"jumpSum\":%u,\"fnvNs\":%.3f,\"fnvSum\":%u}\n", jump_best / jump_keys * 1e9, jump_sum,
         fnv_best / fnv_keys * 1e9, fnv_sum);
}
