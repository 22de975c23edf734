// sink: the cheapest correct receiver of remote write. It listens on several ports of 127.0.0.1, decompresses every body,
// counts its series and samples, and answers 204.
//   sink PORTS STATSFILE
// Prints one JSON line, the ports it listens on, and serves until it is ended. STATSFILE is shared memory: for each port
// STATS_PER_PORT numbers of 64 bits, by enum counter.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <snappy-c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum counter { REQUESTS, SERIES, SAMPLES, ERRORS, STATS_PER_PORT };
enum { MAX_PORTS = 1024, HEAD_BYTES = 8192, MAX_PLAIN_BYTES = 1 << 28 };
enum { SERIES_FIELD = (1 << 3) | 2, SAMPLE_FIELD = (2 << 3) | 2 };

// A listener has no buffers; a connection reads a head, then `missing` bytes of a body.
struct socket {
  int fd, is_listener;
  volatile uint64_t *stats;
  char head[HEAD_BYTES];
  size_t head_bytes;
  char *body;
  size_t body_bytes, body_capacity, missing;
};

static uint8_t *plain;
static size_t plain_capacity;

static int read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < end; shift += 7) {
    uint8_t byte = *(*at)++;
    *value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return 1;
  }
  return 0;
}

// Passes over a field's content, whose tag was read.
static int skip_field(const uint8_t **at, const uint8_t *end, uint64_t tag) {
  uint64_t length = 0;
  switch (tag & 7) {
    case 0: return read_varint(at, end, &length);
    case 1: length = 8; break;
    case 2: if (!read_varint(at, end, &length)) return 0; break;
    case 5: length = 4; break;
    default: return 0;
  }
  if (length > (uint64_t)(end - *at)) return 0;
  *at += length;
  return 1;
}

static int count_samples(const uint8_t *at, const uint8_t *end, uint64_t *samples) {
  uint64_t tag;
  while (at < end) {
    if (!read_varint(&at, end, &tag) || !skip_field(&at, end, tag)) return 0;
    *samples += tag == SAMPLE_FIELD;
  }
  return 1;
}

static int count_request(const uint8_t *at, const uint8_t *end, volatile uint64_t *stats) {
  uint64_t tag, series = 0, samples = 0;
  while (at < end) {
    if (!read_varint(&at, end, &tag)) return 0;
    const uint8_t *content = at;
    if (!skip_field(&at, end, tag)) return 0;
    if (tag != SERIES_FIELD) continue;
    uint64_t length;
    read_varint(&content, end, &length);
    if (!count_samples(content, at, &samples)) return 0;
    series++;
  }
  stats[SERIES] += series;
  stats[SAMPLES] += samples;
  return 1;
}

static int uncompress(const char *block, size_t block_bytes, size_t *plain_bytes) {
  if (snappy_uncompressed_length(block, block_bytes, plain_bytes) != SNAPPY_OK) return 0;
  if (*plain_bytes > MAX_PLAIN_BYTES) return 0;
  if (*plain_bytes > plain_capacity) plain = realloc(plain, plain_capacity = *plain_bytes * 2);
  return snappy_uncompress(block, block_bytes, (char *)plain, plain_bytes) == SNAPPY_OK;
}

static int answer(struct socket *s, const char *text) {
  size_t length = strlen(text);
  return write(s->fd, text, length) == (ssize_t)length;
}

static int body_is_whole(struct socket *s) {
  size_t plain_bytes;
  s->stats[REQUESTS]++;
  if (!uncompress(s->body, s->body_bytes, &plain_bytes) || !count_request(plain, plain + plain_bytes, s->stats)) {
    s->stats[ERRORS]++;
    return answer(s, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  }
  return answer(s, "HTTP/1.1 204 No Content\r\n\r\n");
}

// The head is whole: the body's length is all that counts in it.
static int begin_body(struct socket *s) {
  const char *line = strcasestr(s->head, "\r\ncontent-length:");
  s->body_bytes = 0;
  s->missing = line ? strtoull(line + strlen("\r\ncontent-length:"), 0, 10) : 0;
  if (s->missing == 0) {
    s->stats[ERRORS]++;
    return answer(s, "HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\n\r\n");
  }
  if (s->missing > s->body_capacity) s->body = realloc(s->body, s->body_capacity = s->missing * 2);
  return 1;
}

// Takes bytes of the head, up to its end; answers how many it took, or -1 when the connection is of no use.
static ssize_t take_head(struct socket *s, const char *bytes, size_t count) {
  size_t room = HEAD_BYTES - 1 - s->head_bytes, before = s->head_bytes;
  if (count > room) count = room;
  if (count == 0) return -1;
  memcpy(s->head + before, bytes, count);
  s->head_bytes += count;
  s->head[s->head_bytes] = 0;
  char *end = strstr(s->head + (before > 3 ? before - 3 : 0), "\r\n\r\n");
  if (!end) return count;
  end[2] = 0;
  size_t head_bytes = end + 4 - s->head;
  s->head_bytes = 0;
  return begin_body(s) ? (ssize_t)(head_bytes - before) : -1;
}

static int take_bytes(struct socket *s, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t taken;
    if (s->missing == 0) {
      taken = take_head(s, bytes, count);
      if (taken < 0) return 0;
    } else {
      taken = count < s->missing ? count : s->missing;
      memcpy(s->body + s->body_bytes, bytes, taken);
      s->body_bytes += taken;
      s->missing -= taken;
      if (s->missing == 0 && !body_is_whole(s)) return 0;
    }
    bytes += taken;
    count -= taken;
  }
  return 1;
}

static void watch(int epoll, struct socket *s) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
  epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &event);
}

static void accept_all(int epoll, struct socket *listener) {
  int fd, one = 1;
  while ((fd = accept4(listener->fd, 0, 0, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct socket *s = calloc(1, sizeof *s);
    s->fd = fd;
    s->stats = listener->stats;
    watch(epoll, s);
  }
}

// Listens on a free port of 127.0.0.1; answers which, or 0.
static int listen_anywhere(struct socket *s) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  s->is_listener = 1;
  if (bind(s->fd, (void *)&address, size) || listen(s->fd, 1024)) return 0;
  return getsockname(s->fd, (void *)&address, &size) ? 0 : ntohs(address.sin_port);
}

int main(int argc, char **argv) {
  int ports = argc == 3 ? atoi(argv[1]) : 0;
  if (ports < 1 || ports > MAX_PORTS) return fprintf(stderr, "usage: sink PORTS STATSFILE\n"), 2;
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);

  size_t stats_bytes = ports * STATS_PER_PORT * sizeof(uint64_t);
  int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, stats_bytes)) return perror(argv[2]), 1;
  volatile uint64_t *stats = mmap(0, stats_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  int epoll = epoll_create1(0);

  for (int i = 0; i < ports; i++) {
    struct socket *listener = calloc(1, sizeof *listener);
    listener->stats = stats + i * STATS_PER_PORT;
    int port = listen_anywhere(listener);
    if (port == 0) return perror("listen"), 1;
    watch(epoll, listener);
    printf("%s%d", i == 0 ? "[" : ",", port);
  }
  printf("]\n");
  fflush(stdout);

  static char bytes[1 << 18];
  struct epoll_event events[128];
  for (;;) {
    int count = epoll_wait(epoll, events, 128, -1);
    if (count < 0 && errno != EINTR) return perror("epoll_wait"), 1;
    for (int i = 0; i < count; i++) {
      struct socket *s = events[i].data.ptr;
      if (s->is_listener) {
        accept_all(epoll, s);
        continue;
      }
      ssize_t got = read(s->fd, bytes, sizeof bytes);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0 || !take_bytes(s, bytes, got)) {
        close(s->fd);
        free(s->body);
        free(s);
      }
    }
  }
}
