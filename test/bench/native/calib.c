// calib: how fast this machine is right now. A fixed job (snappy decompression, a walk through the protobuf, FNV-1a over all
// names and values) over some bodies of the corpus, for some seconds of CPU time.
//   calib CORPUS SECONDS
// Prints series per CPU-second.
#define _GNU_SOURCE
#include <fcntl.h>
#include <snappy-c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BODIES = 20, EVERY = 10, LABEL_FIELD = (1 << 3) | 2 };

struct body {
  char *bytes;
  size_t size;
};

static uint32_t hashes; // printed, so that the compiler leaves the work in

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t varint(const uint8_t **at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

static uint32_t hash_label(const uint8_t *at, const uint8_t *end, uint32_t hash) {
  while (at < end) {
    varint(&at);
    for (uint64_t left = varint(&at); left > 0; left--) hash = (hash ^ *at++) * 16777619u;
  }
  return hash;
}

static void hash_series(const uint8_t *at, const uint8_t *end) {
  uint32_t hash = 2166136261u;
  while (at < end) {
    uint64_t tag = varint(&at), length = varint(&at);
    if (tag == LABEL_FIELD) hash = hash_label(at, at + length, hash);
    at += length;
  }
  hashes ^= hash;
}

static long hash_request(const uint8_t *at, const uint8_t *end) {
  long series = 0;
  while (at < end) {
    varint(&at);
    uint64_t length = varint(&at);
    hash_series(at, at + length);
    at += length;
    series++;
  }
  return series;
}

static int read_body(const char *folder, int number, struct body *body) {
  char name[4096];
  struct stat stat;
  snprintf(name, sizeof name, "%s/req-%04d.sz", folder, number);
  int file = open(name, O_RDONLY);
  if (file < 0 || fstat(file, &stat)) return perror(name), 0;
  body->size = stat.st_size;
  body->bytes = malloc(body->size);
  return read(file, body->bytes, body->size) == (ssize_t)body->size;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: calib CORPUS SECONDS\n"), 2;
  struct body bodies[BODIES];
  size_t capacity = 0, plain_bytes;
  for (int i = 0; i < BODIES; i++) {
    if (!read_body(argv[1], i * EVERY, &bodies[i])) return 1;
    snappy_uncompressed_length(bodies[i].bytes, bodies[i].size, &plain_bytes);
    if (plain_bytes > capacity) capacity = plain_bytes;
  }
  uint8_t *plain = malloc(capacity);
  double start = cpu_seconds(), end = start + atof(argv[2]);
  long series = 0;
  while (cpu_seconds() < end) {
    for (int i = 0; i < BODIES; i++) {
      plain_bytes = capacity;
      if (snappy_uncompress(bodies[i].bytes, bodies[i].size, (char *)plain, &plain_bytes) != SNAPPY_OK) return 1;
      series += hash_request(plain, plain + plain_bytes);
    }
  }
  printf("%.0f %u\n", series / (cpu_seconds() - start), hashes);
}
