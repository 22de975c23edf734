// The bodies that loadgen sends.
//
// A body, req-NUMBER.sz, may have holes, whose places are in req-NUMBER.holes as numbers of 32 bits: before each sending,
// every hole is filled with HOLE_BYTES digits that were never sent before, which makes a new series of it. The compressed body
// has each hole as plain text that nothing refers to, so this costs no compression: see holes.ts.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLE_BYTES = 16, HEAD_ROOM = 1024 };

struct request {
  char *bytes; // head and body
  size_t size, head_bytes;
  uint32_t *holes; // places within the body
  size_t hole_count;
};

struct corpus {
  struct request *requests;
  size_t count, largest;
};

// Reads a file, with some room before it; 0 when there is none.
static char *read_file(const char *name, size_t room, size_t *size) {
  struct stat stat;
  int file = open(name, O_RDONLY);
  if (file < 0 || fstat(file, &stat)) return 0;
  *size = stat.st_size;
  char *bytes = malloc(room + *size);
  if (read(file, bytes + room, *size) != (ssize_t)*size) exit((perror(name), 1));
  close(file);
  return bytes;
}

static int load_request(struct request *request, const char *folder, size_t number, int port, const char *path) {
  char name[4096], head[HEAD_ROOM];
  size_t body_bytes, holes_bytes = 0;
  snprintf(name, sizeof name, "%s/req-%04zu.sz", folder, number);
  char *file = read_file(name, HEAD_ROOM, &body_bytes);
  if (!file) return 0;
  request->head_bytes = snprintf(head, sizeof head,
    "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: Prometheus/3.5.3\r\nContent-Encoding: snappy\r\n"
    "Content-Type: application/x-protobuf\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: %zu\r\n\r\n",
    path, port, body_bytes);
  request->bytes = file + HEAD_ROOM - request->head_bytes;
  memcpy(request->bytes, head, request->head_bytes);
  request->size = request->head_bytes + body_bytes;
  snprintf(name, sizeof name, "%s/req-%04zu.holes", folder, number);
  request->holes = (uint32_t *)read_file(name, 0, &holes_bytes);
  request->hole_count = holes_bytes / sizeof(uint32_t);
  return 1;
}

static void load_corpus(struct corpus *corpus, const char *folder, int port, const char *path) {
  struct request request;
  while (load_request(&request, folder, corpus->count, port, path)) {
    corpus->requests = realloc(corpus->requests, (corpus->count + 1) * sizeof request);
    corpus->requests[corpus->count++] = request;
    if (request.size > corpus->largest) corpus->largest = request.size;
  }
}

static void fill_holes(char *body, const struct request *request) {
  static uint64_t filled;
  for (size_t i = 0; i < request->hole_count; i++) {
    uint64_t number = filled++;
    char *hole = body + request->holes[i];
    for (int digit = HOLE_BYTES - 1; digit >= 0; digit--, number >>= 4) hole[digit] = "0123456789abcdef"[number & 15];
  }
}
