// placement: the algorithms of src/hash in C, over the same slots and keys, to compare their times with.
//   placement ALGORITHM PARAMETER SLOTS KEYS WARM_UP_MS MEASURED_MS
// PARAMETER: tasks of balanced, points of ring_md5, ring_fnv1a and ring_md5_search, entries of maglev, probes of
// multi_probe; of no meaning for the others. ring_md5_search is the ring as libketama searches it: all of it for every key.
// Prints one JSON line: see TimedLookups in timeLookups.ts, which does the same.
#define _GNU_SOURCE
#include "hashes.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NAME_BYTES = 32, EMPTY = 0xffff, KEYS_PER_PIECE = 4000 };
static const uint32_t PROBE_STEP = 0x9e3779b9;

// Points on a circle in ascending order, the first once more at the end, and where each of its equal sections starts.
struct circle {
  uint32_t *points, *owners, *starts;
  uint32_t count;
  int section_bits;
};

// What was built, and how a key is looked up in it: called by this pointer, as a library would be.
struct placement {
  uint32_t (*place)(const struct placement *self, uint32_t key);
  uint32_t slots, parameter;
  uint32_t *upper_seeds, *lower_seeds; // rendezvous
  uint32_t *tasks;                     // balanced: slot by task
  uint16_t *entries;                   // maglev: slot by entry
  struct circle circle;                // rings and multi_probe
};

static size_t table_bytes;

static void *table(size_t count, size_t bytes) {
  table_bytes += count * bytes;
  return calloc(count, bytes);
}

static const char *slot_name(uint32_t slot) {
  static char name[NAME_BYTES];
  snprintf(name, sizeof name, "vmagent-%u", slot);
  return name;
}

// ---- hashmod, jump

static uint32_t place_hashmod(const struct placement *p, uint32_t key) { return key % p->slots; }

// Lamping & Veach, arXiv:1406.2294, figure 1.
static uint32_t place_jump(const struct placement *p, uint32_t short_key) {
  uint64_t key = short_key;
  int64_t bucket = -1, next = 0;
  while (next < p->slots) {
    bucket = next;
    key = key * 2862933555777941757ULL + 1;
    next = (bucket + 1) * ((double)(1LL << 31) / (double)((key >> 33) + 1));
  }
  return bucket;
}

// ---- balanced: see src/hash/balanced.ts for the chains

static uint32_t place_balanced(const struct placement *p, uint32_t task) { return p->tasks[task]; }

static void build_balanced(struct placement *p) {
  uint32_t count = p->parameter, *slot_of = table(count, sizeof *slot_of);
  uint32_t *order = calloc(count, sizeof *order), *next = calloc(count, sizeof *next);
  uint32_t *held = calloc(p->slots, sizeof *held), *first = calloc(p->slots, sizeof *first);
  for (uint32_t task = 0; task < count; task++) {
    uint32_t other = mix32(task) % (task + 1);
    order[task] = order[other];
    order[other] = task;
  }
  for (uint32_t at = 1; at < count; at++) next[order[at - 1]] = order[at];
  held[0] = count;
  first[0] = order[0];
  for (uint32_t added = 1; added < p->slots; added++) {
    uint32_t missing = count / (added + 1);
    for (uint32_t most = (count + added - 1) / added; missing > 0; most--) {
      for (uint32_t slot = 0; slot < added && missing > 0; slot++) {
        if (held[slot] != most) continue;
        uint32_t task = first[slot];
        first[slot] = next[task];
        next[task] = first[added];
        first[added] = task;
        held[slot]--, held[added]++, missing--;
        slot_of[task] = added;
      }
    }
  }
  free(order), free(next), free(held), free(first);
  p->tasks = slot_of;
  p->place = place_balanced;
}

// ---- rendezvous

static uint32_t place_rendezvous(const struct placement *p, uint32_t key) {
  uint32_t mixed = mix32(key), best = 0;
  int32_t highest = 0;
  for (uint32_t slot = 0; slot < p->slots; slot++) {
    uint32_t hash = mixed ^ p->upper_seeds[slot];
    hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = ((hash ^ hash >> 15) + p->lower_seeds[slot]) * 0x846ca68bu;
    hash ^= hash >> 16;
    if (slot > 0 && (int32_t)hash <= highest) continue;
    highest = hash;
    best = slot;
  }
  return best;
}

static void build_rendezvous(struct placement *p) {
  p->upper_seeds = table(p->slots, sizeof *p->upper_seeds);
  p->lower_seeds = table(p->slots, sizeof *p->lower_seeds);
  for (uint32_t slot = 0; slot < p->slots; slot++) {
    uint64_t seed = xxhash64(slot_name(slot), 0);
    p->upper_seeds[slot] = seed >> 32;
    p->lower_seeds[slot] = seed;
  }
  p->place = place_rendezvous;
}

// ---- maglev: as Envoy fills it, with slots of one weight

static uint32_t place_maglev(const struct placement *p, uint32_t key) { return p->entries[mix32(key) % p->parameter]; }

static void build_maglev(struct placement *p) {
  uint32_t size = p->parameter, *next = calloc(p->slots, sizeof *next), *skips = calloc(p->slots, sizeof *skips);
  p->entries = table(size, sizeof *p->entries);
  memset(p->entries, 0xff, size * sizeof *p->entries);
  for (uint32_t slot = 0; slot < p->slots; slot++) {
    next[slot] = xxhash64(slot_name(slot), 0) % size;
    skips[slot] = xxhash64(slot_name(slot), 1) % (size - 1) + 1;
  }
  for (uint32_t filled = 0; filled < size;) {
    for (uint32_t slot = 0; slot < p->slots && filled < size; slot++, filled++) {
      while (p->entries[next[slot]] != EMPTY) next[slot] = (next[slot] + skips[slot]) % size;
      p->entries[next[slot]] = slot;
    }
  }
  free(next), free(skips);
  p->place = place_maglev;
}

// ---- rings and multi_probe

static int compare_points(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

// `both`: point << 32 | owner, in any order; freed here.
static void close_circle(struct circle *circle, uint64_t *both, uint32_t count) {
  qsort(both, count, sizeof *both, compare_points);
  int bits = 1;
  while (1u << bits < count) bits++;
  circle->count = count;
  circle->section_bits = 32 - bits;
  circle->points = table(count + 1, sizeof *circle->points);
  circle->owners = table(count + 1, sizeof *circle->owners);
  circle->starts = table((1u << bits) + 1, sizeof *circle->starts);
  for (uint32_t i = 0; i <= count; i++) {
    circle->points[i] = both[i % count] >> 32;
    circle->owners[i] = both[i % count];
    if (i < count) circle->starts[(circle->points[i] >> circle->section_bits) + 1]++;
  }
  for (uint32_t section = 1; section <= 1u << bits; section++) circle->starts[section] += circle->starts[section - 1];
  free(both);
}

// The first point at or past `at`, of those from `low` to before `high`, or `high`.
static uint32_t search(const uint32_t *points, uint32_t low, uint32_t high, uint32_t at) {
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (points[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

static uint32_t index_after(const struct circle *circle, uint32_t at) {
  uint32_t section = at >> circle->section_bits;
  return search(circle->points, circle->starts[section], circle->starts[section + 1], at);
}

static uint32_t place_ring(const struct placement *p, uint32_t key) {
  return p->circle.owners[index_after(&p->circle, mix32(key))];
}

static uint32_t place_ring_search(const struct placement *p, uint32_t key) {
  return p->circle.owners[search(p->circle.points, 0, p->circle.count, mix32(key))];
}

static void build_ring(struct placement *p, int is_md5) {
  uint32_t points = p->parameter;
  uint64_t *both = calloc(p->slots * points, sizeof *both);
  for (uint32_t slot = 0; slot < p->slots; slot++) {
    char text[2 * NAME_BYTES];
    uint32_t digest[4] = {0};
    for (uint32_t point = 0; point < points; point++) {
      uint32_t position;
      if (is_md5) {
        snprintf(text, sizeof text, "%s-%u", slot_name(slot), point / 4);
        if (point % 4 == 0) md5(text, digest);
        position = digest[point % 4];
      } else {
        snprintf(text, sizeof text, "%s:%u", slot_name(slot), point);
        position = fnv1a32(text);
      }
      both[slot * points + point] = (uint64_t)position << 32 | slot;
    }
  }
  close_circle(&p->circle, both, p->slots * points);
  p->place = place_ring;
}

static uint32_t place_multi_probe(const struct placement *p, uint32_t key) {
  uint32_t state = mix32(key), nearest = 0, least = 0xffffffff;
  for (uint32_t probe = 0; probe < p->parameter; probe++, state += PROBE_STEP) {
    uint32_t position = mix32(state), index = index_after(&p->circle, position);
    uint32_t distance = p->circle.points[index] - position;
    if (distance >= least && probe > 0) continue;
    least = distance;
    nearest = index;
  }
  return p->circle.owners[nearest];
}

static void build_multi_probe(struct placement *p) {
  uint64_t *both = calloc(p->slots, sizeof *both);
  for (uint32_t slot = 0; slot < p->slots; slot++) {
    both[slot] = (siphash24(slot_name(slot)) >> 32) << 32 | slot;
  }
  close_circle(&p->circle, both, p->slots);
  p->place = place_multi_probe;
}

// ---- measuring

static void build(struct placement *p, const char *algorithm) {
  if (!strcmp(algorithm, "hashmod")) p->place = place_hashmod;
  else if (!strcmp(algorithm, "jump")) p->place = place_jump;
  else if (!strcmp(algorithm, "balanced")) build_balanced(p);
  else if (!strcmp(algorithm, "rendezvous")) build_rendezvous(p);
  else if (!strcmp(algorithm, "maglev")) build_maglev(p);
  else if (!strcmp(algorithm, "multi_probe")) build_multi_probe(p);
  else if (!strcmp(algorithm, "ring_md5")) build_ring(p, 1);
  else if (!strcmp(algorithm, "ring_fnv1a")) build_ring(p, 0);
  else if (!strcmp(algorithm, "ring_md5_search")) build_ring(p, 1), p->place = place_ring_search;
  else exit((fprintf(stderr, "placement: no algorithm %s\n", algorithm), 2));
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static uint32_t place_all(const struct placement *p, const uint32_t *keys, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += p->place(p, keys[i]);
  return sum;
}

// Places all keys again and again for so long; answers what all pieces of them take together, each at its shortest.
static double shortest_ms(const struct placement *p, const uint32_t *keys, size_t count, double for_ms) {
  size_t pieces = (count + KEYS_PER_PIECE - 1) / KEYS_PER_PIECE;
  double *shortest = malloc(pieces * sizeof *shortest), all = 0, began = now_ms();
  uint32_t *sums = malloc(pieces * sizeof *sums);
  for (int pass = 0; pass == 0 || now_ms() - began < for_ms; pass++) {
    for (size_t i = 0; i < pieces; i++) {
      size_t at = i * KEYS_PER_PIECE, left = count - at;
      double start = now_ms();
      uint32_t sum = place_all(p, keys + at, left < KEYS_PER_PIECE ? left : KEYS_PER_PIECE);
      double ms = now_ms() - start;
      if (pass == 0 || ms < shortest[i]) shortest[i] = ms;
      if (pass == 0) sums[i] = sum;
      // Answers that nobody looked at might not be worked out at all.
      if (sum != sums[i]) exit((fprintf(stderr, "placement: other answers in another pass\n"), 1));
    }
  }
  for (size_t i = 0; i < pieces; i++) all += shortest[i];
  free(shortest), free(sums);
  return all;
}

// The finaliser of MurmurHash3 over a counter, as in keys.ts.
static uint32_t key_at(uint32_t index) {
  uint32_t key = index + 1;
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

int main(int argc, char **argv) {
  if (argc != 7) return fprintf(stderr, "usage: see the first lines of placement.c\n"), 2;
  struct placement p = {.parameter = atoi(argv[2]), .slots = atoi(argv[3])};
  size_t count = atol(argv[4]);
  double start = now_ms();
  build(&p, argv[1]);
  double build_ms = now_ms() - start;

  uint32_t *keys = malloc(count * sizeof *keys), checksum = 0;
  for (size_t i = 0; i < count; i++) keys[i] = p.tasks ? key_at(i) % p.parameter : key_at(i);
  for (size_t i = 0; i < count; i++) checksum = checksum * 31 + p.place(&p, keys[i]);
  shortest_ms(&p, keys, count, atof(argv[5]));
  double lookup_ns = shortest_ms(&p, keys, count, atof(argv[6])) / count * 1e6;
  printf("{\"buildMs\":%.4f,\"bytes\":%zu,\"lookupNs\":%.3f,\"checksum\":%u}\n", build_ms, table_bytes, lookup_ns, checksum);
}
