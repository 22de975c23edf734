// The hashes that placements are built with, of short texts: names of slots and points. Each is one function of its paper
// or specification; see src/hash for the same in TypeScript.
#ifndef HASHES_H
#define HASHES_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t rotate32(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }
static inline uint64_t rotate64(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

// lowbias32, as in src/hash/mix.ts.
static inline uint32_t mix32(uint32_t key) {
  key = (key ^ key >> 16) * 0x7feb352du;
  key = (key ^ key >> 15) * 0x846ca68bu;
  return key ^ key >> 16;
}

static uint32_t fnv1a32(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 16777619u;
  return hash;
}

// MD5 of a text of less than 56 bytes, which is one block. The digest as its four little-endian words.
static void md5(const char *text, uint32_t digest[4]) {
  static const int shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  static uint32_t sines[64];
  for (int i = 0; sines[63] == 0 && i < 64; i++) sines[i] = (uint32_t)(fabs(sin(i + 1)) * 4294967296.0);
  uint32_t block[16] = {0};
  size_t length = strlen(text);
  memcpy(block, text, length);
  ((uint8_t *)block)[length] = 0x80;
  block[14] = length * 8;
  const uint32_t start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  uint32_t a = start[0], b = start[1], c = start[2], d = start[3];
  for (int i = 0; i < 64; i++) {
    uint32_t mixed;
    int word;
    switch (i / 16) {
      case 0: mixed = (b & c) | (~b & d), word = i; break;
      case 1: mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16; break;
      case 2: mixed = b ^ c ^ d, word = (3 * i + 5) % 16; break;
      default: mixed = c ^ (b | ~d), word = 7 * i % 16;
    }
    uint32_t turned = b + rotate32(a + mixed + sines[i] + block[word], shifts[i / 16][i % 4]);
    a = d, d = c, c = b, b = turned;
  }
  digest[0] = start[0] + a, digest[1] = start[1] + b, digest[2] = start[2] + c, digest[3] = start[3] + d;
}

// XXH64 of a text of less than 32 bytes, which has no stripes.
static uint64_t xxhash64(const char *text, uint64_t seed) {
  const uint64_t p1 = 0x9e3779b185ebca87, p2 = 0xc2b2ae3d27d4eb4f, p3 = 0x165667b19e3779f9, p4 = 0x85ebca77c2b2ae63,
                 p5 = 0x27d4eb2f165667c5;
  size_t left = strlen(text);
  uint64_t hash = seed + p5 + left;
  for (; left >= 8; text += 8, left -= 8) {
    uint64_t lane;
    memcpy(&lane, text, 8);
    hash = rotate64(hash ^ rotate64(lane * p2, 31) * p1, 27) * p1 + p4;
  }
  for (; left >= 4; text += 4, left -= 4) {
    uint32_t lane;
    memcpy(&lane, text, 4);
    hash = rotate64(hash ^ lane * p1, 23) * p2 + p3;
  }
  for (; left > 0; text++, left--) hash = rotate64(hash ^ (uint8_t)*text * p5, 11) * p1;
  hash = (hash ^ hash >> 33) * p2;
  hash = (hash ^ hash >> 29) * p3;
  return hash ^ hash >> 32;
}

static void sip_rounds(uint64_t v[4], int count) {
  for (; count > 0; count--) {
    v[0] += v[1], v[1] = rotate64(v[1], 13) ^ v[0], v[0] = rotate64(v[0], 32);
    v[2] += v[3], v[3] = rotate64(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotate64(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotate64(v[1], 17) ^ v[2], v[2] = rotate64(v[2], 32);
  }
}

// SipHash-2-4 with the key 0.
static uint64_t siphash24(const char *text) {
  uint64_t v[4] = {0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573};
  size_t length = strlen(text);
  for (size_t at = 0; at <= length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, text + at, length - at < 8 ? length - at : 8);
    if (length - at < 8) word |= (uint64_t)length << 56;
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
  }
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
