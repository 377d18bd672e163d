/*
 * HTTP/1.1 load generator: N keep-alive connections with one request in flight each, on one thread.
 *
 *   load <port> <connections> <duration ms> <max requests, 0 = no limit> <expected status, 0 = any 2xx>
 *        <first sequence number> <file of requests>
 *
 * Sends the requests of the file in turn, from the first again after the last. The marker <<<<sequence>>>> in a request
 * is replaced by a number of 16 digits that grows with every request. When the time or the number of requests is over,
 * the generator waits for the responses under way. It prints one line of JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "records.h"

#define MARKER "<<<<sequence>>>>"
#define MARKER_LENGTH 16
#define MAX_HEAD 16384
#define READ_BYTES 65536

/* What the next byte of a response belongs to. */
typedef enum { HEAD, SIZED_BODY, CHUNK_SIZE, CHUNK_BYTES, CHUNK_END, TRAILER, DONE } Part;

typedef struct {
  int fd;
  char *request;
  size_t request_length, request_sent;
  uint64_t sent_at;
  Part part;
  int status;
  int closes;      /* the response has "Connection: close" */
  size_t missing;  /* bytes left of the body or chunk */
  size_t line;     /* bytes of the trailer's present line */
  size_t head_length;
  char head[MAX_HEAD + 1];
} Connection;

/* Latencies in nanoseconds: 64 buckets for each power of two, so a bucket is at most 1.6 % wide. */
#define SUB_BITS 6
static uint64_t histogram[64 << SUB_BITS];

static size_t bucket_of(uint64_t ns) {
  if (ns < 1 << SUB_BITS) return ns;
  int shift = 63 - __builtin_clzll(ns) - SUB_BITS;
  return ((size_t)(shift + 1) << SUB_BITS) + ((ns >> shift) & ((1 << SUB_BITS) - 1));
}

static double bucket_ms(size_t bucket) {
  if (bucket < 1 << SUB_BITS) return bucket / 1e6;
  int shift = (int)(bucket >> SUB_BITS) - 1;
  uint64_t low = ((uint64_t)(bucket & ((1 << SUB_BITS) - 1)) | 1u << SUB_BITS) << shift;
  return (low + (1ull << shift) / 2.0) / 1e6;
}

static uint64_t requests_sent, responses, unexpected;
static int unexpected_status; /* the first */

static double percentile_ms(double fraction) {
  uint64_t wanted = (uint64_t)(responses * fraction), seen = 0;
  for (size_t i = 0; i < sizeof histogram / sizeof *histogram; i++)
    if ((seen += histogram[i]) > wanted) return bucket_ms(i);
  return 0;
}

static struct sockaddr_in address = {.sin_family = AF_INET};
static Record *requests;
static size_t *markers; /* offset of the marker in each request, SIZE_MAX if it has none */
static size_t request_count;
static uint64_t max_requests, ends_at, sequence;
static int expected_status, poller, active;

static void open_connection(Connection *c) {
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) fail_call("connect");
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event) != 0) fail_call("epoll_ctl");
}

static void wait_for(Connection *c, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void write_rest(Connection *c) {
  while (c->request_sent < c->request_length) {
    ssize_t n = write(c->fd, c->request + c->request_sent, c->request_length - c->request_sent);
    if (n < 0 && errno == EAGAIN) {
      wait_for(c, EPOLLIN | EPOLLOUT);
      return;
    }
    if (n < 0) fail_call("write");
    c->request_sent += (size_t)n;
  }
}

static void send_next(Connection *c) {
  uint64_t now = now_ns();
  if (now >= ends_at || (max_requests > 0 && requests_sent >= max_requests)) {
    close(c->fd);
    active--;
    return;
  }
  if (c->closes) {
    close(c->fd);
    open_connection(c);
  }
  size_t index = requests_sent++ % request_count;
  Record *request = &requests[index];
  c->request = request->bytes;
  c->request_length = request->length;
  c->request_sent = 0;
  /* In place, although another connection may still be sending this request: only its first write contains the marker. */
  if (markers[index] != SIZE_MAX) {
    char digits[MARKER_LENGTH + 1];
    snprintf(digits, sizeof digits, "%016llu", (unsigned long long)sequence++);
    memcpy(request->bytes + markers[index], digits, MARKER_LENGTH);
  }
  c->part = HEAD;
  c->head_length = 0;
  c->sent_at = now;
  write_rest(c);
}

/* Reads status and framing from the complete head. */
static void parse_head(Connection *c) {
  c->head[c->head_length] = 0;
  c->status = atoi(c->head + 9);
  const char *length = strcasestr(c->head, "\r\ncontent-length:");
  c->closes = strcasestr(c->head, "\r\nconnection: close") != NULL;
  if (c->status < 200) {
    c->part = HEAD;
    c->head_length = 0;
  } else if (length != NULL) {
    c->missing = strtoul(length + 17, NULL, 10);
    c->part = c->missing == 0 ? DONE : SIZED_BODY;
  } else if (strcasestr(c->head, "\r\ntransfer-encoding: chunked") != NULL) {
    c->missing = 0;
    c->part = CHUNK_SIZE;
  } else if (c->status == 204 || c->status == 304) {
    c->part = DONE;
  } else {
    fail("response with neither Content-Length nor chunks");
  }
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Passes received bytes through the response's state; stops at its end. */
static void parse(Connection *c, const char *at, const char *end) {
  while (at < end && c->part != DONE) {
    switch (c->part) {
      case HEAD: {
        size_t n = (size_t)(end - at), before = c->head_length;
        if (n > MAX_HEAD - before) n = MAX_HEAD - before;
        memcpy(c->head + before, at, n);
        size_t from = before < 3 ? 0 : before - 3;
        char *stop = memmem(c->head + from, before + n - from, "\r\n\r\n", 4);
        if (stop == NULL && before + n == MAX_HEAD) fail("head of a response too long");
        c->head_length = stop == NULL ? before + n : (size_t)(stop + 4 - c->head);
        at += c->head_length - before;
        if (stop != NULL) parse_head(c);
        break;
      }
      case SIZED_BODY:
      case CHUNK_BYTES: {
        size_t n = (size_t)(end - at) < c->missing ? (size_t)(end - at) : c->missing;
        at += n;
        if ((c->missing -= n) == 0) c->part = c->part == SIZED_BODY ? DONE : CHUNK_END;
        break;
      }
      case CHUNK_SIZE:
        if (*at == '\n') {
          c->line = 0;
          c->part = c->missing == 0 ? TRAILER : CHUNK_BYTES;
        } else if (hex_digit(*at) >= 0) {
          c->missing = c->missing << 4 | (size_t)hex_digit(*at);
        } else if (*at != '\r') {
          fail("chunk size that is no number");
        }
        at++;
        break;
      case CHUNK_END:
        if (*at++ == '\n') c->part = CHUNK_SIZE;
        break;
      case TRAILER:
        if (*at == '\n') {
          c->part = c->line == 0 ? DONE : TRAILER;
          c->line = 0;
        } else if (*at != '\r') {
          c->line++;
        }
        at++;
        break;
      case DONE:
        break;
    }
  }
}

static void read_response(Connection *c) {
  static char buffer[READ_BYTES];
  ssize_t n = read(c->fd, buffer, sizeof buffer);
  if (n < 0 && errno == EAGAIN) return;
  if (n < 0) fail_call("read");
  if (n == 0) fail("the server closed a connection before its response was complete");
  parse(c, buffer, buffer + n);
  if (c->part != DONE) return;
  responses++;
  histogram[bucket_of(now_ns() - c->sent_at)]++;
  if (expected_status == 0 ? c->status / 100 != 2 : c->status != expected_status) {
    if (unexpected++ == 0) unexpected_status = c->status;
  }
  send_next(c);
}

static double cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
  if (argc != 8) fail("load: wrong number of arguments");
  signal(SIGPIPE, SIG_IGN);
  address.sin_port = htons((uint16_t)atoi(argv[1]));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  active = atoi(argv[2]);
  max_requests = strtoull(argv[4], NULL, 10);
  expected_status = atoi(argv[5]);
  sequence = strtoull(argv[6], NULL, 10);
  requests = read_records(argv[7], &request_count);
  markers = malloc(request_count * sizeof *markers);
  for (size_t i = 0; i < request_count; i++) {
    char *marker = memmem(requests[i].bytes, requests[i].length, MARKER, MARKER_LENGTH);
    markers[i] = marker == NULL ? SIZE_MAX : (size_t)(marker - requests[i].bytes);
  }
  poller = epoll_create1(0);
  int count = active;
  Connection *connections = calloc((size_t)count, sizeof *connections);
  for (int i = 0; i < count; i++) open_connection(&connections[i]);
  double cpu_before = cpu_us();
  uint64_t started_at = now_ns();
  ends_at = started_at + strtoull(argv[3], NULL, 10) * 1000000u;
  for (int i = 0; i < count; i++) send_next(&connections[i]);
  struct epoll_event events[256];
  while (active > 0) {
    int n = epoll_wait(poller, events, 256, -1);
    if (n < 0 && errno != EINTR) fail_call("epoll_wait");
    for (int i = 0; i < n; i++) {
      Connection *c = events[i].data.ptr;
      if (events[i].events & EPOLLOUT) {
        wait_for(c, EPOLLIN);
        write_rest(c);
      }
      if (events[i].events & ~(uint32_t)EPOLLOUT) read_response(c);
    }
  }
  double seconds = (now_ns() - started_at) / 1e9;
  double generator_us = responses == 0 ? 0 : (cpu_us() - cpu_before) / responses;
  printf("{\"requests\":%llu,\"unexpected\":%llu,\"unexpectedStatus\":%d,\"perSecond\":%.1f,\"p50Ms\":%.4f,"
         "\"p99Ms\":%.4f,\"generatorUs\":%.2f}\n",
         (unsigned long long)responses, (unsigned long long)unexpected, unexpected_status, responses / seconds,
         percentile_ms(0.5), percentile_ms(0.99), generator_us);
  return 0;
}
