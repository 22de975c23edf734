// loadgen: sends the bodies of a corpus to one address, over keep-alive connections, as fast as answers come or at a rate.
//   loadgen PORT PATH CONNECTIONS REQUESTS_PER_SECOND STATSFILE CORPUS       (0 requests per second: as fast as answers come)
//
// 429 and 5xx are tried again, with the back-off of Prometheus, and count as one request whose latency includes it all. At a
// rate, latency counts from the moment a request was due.
//
// SIGUSR1 forgets the latencies so far. SIGTERM ends the sending; when the last answer is there, one JSON line is printed.
// STATSFILE is shared memory: numbers of 64 bits, by enum counter.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "corpus.h"

enum counter { SENT, ACCEPTED, REFUSED, PUSHED_BACK, CONNECTION_ERRORS, SLOWEST_US, COUNTERS };
enum { ANSWER_BYTES = 16384, LAST_ANSWERS_SECONDS = 60 };
static const double FIRST_BACKOFF = 0.03, LAST_BACKOFF = 5, RECONNECT_AFTER = 0.05;

// A connection is busy from a request's start to its final answer. While `wake` is set it waits to try again.
struct connection {
  int fd, busy;
  char *out;
  size_t out_bytes, sent;
  double due, wake, backoff;
  char in[ANSWER_BYTES];
  size_t in_bytes;
};

static volatile uint64_t *counters;
static volatile sig_atomic_t stopping, forgetting;
static struct sockaddr_in address;
static int epoll;
static struct corpus corpus;
static uint32_t *latencies; // microseconds
static size_t latency_count, latency_capacity;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void on_signal(int number) {
  if (number == SIGUSR1) forgetting = 1;
  else stopping = 1;
}

// ---- sending

static void send_rest(struct connection *c) {
  while (c->fd >= 0 && c->busy && c->wake == 0 && c->sent < c->out_bytes) {
    ssize_t written = send(c->fd, c->out + c->sent, c->out_bytes - c->sent, MSG_NOSIGNAL);
    if (written < 0) return;
    c->sent += written;
  }
}

static void connect_anew(struct connection *c) {
  int one = 1;
  if (c->fd >= 0) close(c->fd);
  c->sent = c->in_bytes = 0;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(c->fd, (void *)&address, sizeof address)) {
    close(c->fd);
    c->fd = -1;
    c->wake = now() + RECONNECT_AFTER;
    counters[CONNECTION_ERRORS]++;
    return;
  }
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void start_request(struct connection *c, double due) {
  const struct request *request = &corpus.requests[counters[SENT]++ % corpus.count];
  memcpy(c->out, request->bytes, request->size);
  fill_holes(c->out + request->head_bytes, request);
  c->busy = 1;
  c->out_bytes = request->size;
  c->sent = c->in_bytes = 0;
  c->due = due;
  c->backoff = FIRST_BACKOFF;
  c->wake = 0;
  if (c->fd < 0) connect_anew(c);
  send_rest(c);
}

// Tries again what has waited for its time; answers when to look again, at the latest at `next`.
static double wake(struct connection *c, double time, double next) {
  if (!c->busy || c->wake == 0) return next;
  if (c->wake > time) return c->wake < next ? c->wake : next;
  c->wake = 0;
  c->sent = c->in_bytes = 0;
  if (c->fd < 0) connect_anew(c);
  send_rest(c);
  return next;
}

// ---- answers

static void remember_latency(double seconds) {
  uint64_t microseconds = seconds * 1e6;
  if (latency_count == latency_capacity) {
    latency_capacity = latency_capacity ? latency_capacity * 2 : 1 << 16;
    latencies = realloc(latencies, latency_capacity * sizeof *latencies);
  }
  latencies[latency_count++] = microseconds;
  if (microseconds > counters[SLOWEST_US]) counters[SLOWEST_US] = microseconds;
}

static void take_answer(struct connection *c, int status) {
  if (status / 100 == 2) counters[ACCEPTED]++;
  else if (status != 429 && status / 100 != 5) counters[REFUSED]++;
  else {
    counters[PUSHED_BACK]++;
    if (!stopping) {
      c->wake = now() + c->backoff;
      c->backoff = c->backoff * 2 > LAST_BACKOFF ? LAST_BACKOFF : c->backoff * 2;
      return;
    }
  }
  remember_latency(now() - c->due);
  c->busy = 0;
}

// The status of the answer that has come in, once it is whole; 0 before. Answers are short and have a length, or are 204.
static int whole_answer(const struct connection *c) {
  const char *end = strstr(c->in, "\r\n\r\n");
  if (!end) return 0;
  int status = atoi(c->in + strlen("HTTP/1.1 "));
  if (status == 204) return status;
  const char *line = strcasestr(c->in, "\r\ncontent-length:");
  size_t length = line && line < end ? strtoul(line + strlen("\r\ncontent-length:"), 0, 10) : 0;
  return c->in + c->in_bytes >= end + 4 + length ? status : 0;
}

static void read_answers(struct connection *c) {
  for (;;) {
    ssize_t got = read(c->fd, c->in + c->in_bytes, ANSWER_BYTES - 1 - c->in_bytes);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) { // closed: what was not answered is sent again
      if (c->busy && c->wake == 0) counters[CONNECTION_ERRORS]++;
      connect_anew(c);
      send_rest(c);
      return;
    }
    c->in_bytes += got;
    c->in[c->in_bytes] = 0;
    int status = whole_answer(c);
    if (status == 0) continue;
    // One that came before the whole request was sent leaves the connection of no use too.
    int closes = strcasestr(c->in, "\r\nconnection: close") != 0;
    c->in_bytes = 0;
    if (c->busy && c->wake == 0) take_answer(c, status);
    if (closes || c->sent < c->out_bytes) {
      connect_anew(c);
      return;
    }
  }
}

// ---- result

static int compare(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static double quantile_ms(double q) {
  return latency_count ? latencies[(size_t)((latency_count - 1) * q)] / 1000.0 : 0;
}

static void print_latencies(void) {
  qsort(latencies, latency_count, sizeof *latencies, compare);
  printf("{\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"slowestMs\":%.3f}\n", quantile_ms(.5), quantile_ms(.99), quantile_ms(1));
}

static volatile uint64_t *map_counters(const char *name) {
  size_t bytes = COUNTERS * sizeof(uint64_t);
  int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, bytes)) exit((perror(name), 1));
  return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

// Starts what is due, and answers when to look again.
static double start_due(struct connection *c, double rate, double began, double time, double next) {
  if (c->busy || stopping) return next;
  double due = rate > 0 ? began + counters[SENT] / rate : time;
  if (due > time) return due < next ? due : next;
  start_request(c, due);
  return next;
}

int main(int argc, char **argv) {
  if (argc != 7) return fprintf(stderr, "usage: loadgen PORT PATH CONNECTIONS REQUESTS_PER_SECOND STATSFILE CORPUS\n"), 2;
  int port = atoi(argv[1]), connection_count = atoi(argv[3]);
  double rate = atof(argv[4]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, 0);
  sigaction(SIGUSR1, &action, 0);
  counters = map_counters(argv[5]);
  load_corpus(&corpus, argv[6], port, argv[2]);
  if (corpus.count == 0) return fprintf(stderr, "no bodies in %s\n", argv[6]), 1;

  epoll = epoll_create1(0);
  address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct connection *connections = calloc(connection_count, sizeof *connections);
  for (int i = 0; i < connection_count; i++) {
    connections[i].fd = -1;
    connections[i].out = malloc(corpus.largest);
    connect_anew(&connections[i]);
  }

  double began = now(), stopped = 0;
  for (;;) {
    double time = now(), next = time + 0.2;
    int busy = 0;
    for (int i = 0; i < connection_count; i++) {
      struct connection *c = &connections[i];
      next = wake(c, time, next);
      next = start_due(c, rate, began, time, next);
      busy += c->busy;
    }
    if (stopping && stopped == 0) stopped = time;
    if (stopping && (busy == 0 || time > stopped + LAST_ANSWERS_SECONDS)) break;

    struct epoll_event events[64];
    double wait = next - now();
    struct timespec timeout = {.tv_sec = wait, .tv_nsec = (wait - (long)wait) * 1e9};
    if (wait < 0) timeout = (struct timespec){0};
    int count = epoll_pwait2(epoll, events, 64, &timeout, 0);
    for (int i = 0; i < count; i++) {
      struct connection *c = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) send_rest(c);
      if (events[i].events & ~EPOLLOUT) read_answers(c);
      if (rate == 0) start_due(c, 0, began, now(), 0);
    }
    if (forgetting) {
      forgetting = 0;
      latency_count = 0;
      counters[SLOWEST_US] = 0;
    }
  }
  print_latencies();
}
