/*
 * A provider that answers at once, on one thread: chat completions as JSON, or a stream of events.
 *
 *   provider <mean pause between events in µs> <file of answers>
 *
 * The first record of the file is the JSON response; the others are a stream: its head, then its events as chunks, and
 * the last chunk. A request with "stream":true in its body gets the stream event by event, one write each. The pause
 * before each event is random, from half to one and a half times the mean, so that streams do not run in step. A request
 * with "user":"burst" as well gets the whole stream in one write. Prints its port as one line of JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "records.h"

#define MAX_CONNECTIONS 4096
#define MAX_REQUEST (1024 * 1024)

typedef struct {
  int fd;
  size_t next_part; /* of the stream under way, 0 if there is none */
  uint64_t due_at;
  size_t length;
  char *bytes; /* the request read so far */
} Connection;

static Connection *connections[MAX_CONNECTIONS]; /* by file descriptor */
static int streaming[MAX_CONNECTIONS];           /* descriptors with a stream under way */
static int streaming_count;
static Record *answers, burst;
static size_t answer_count;
static uint64_t mean_pause_ns;
static int poller, timer;

static uint64_t next_pause(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return mean_pause_ns / 2 + (uint64_t)((state >> 8) / 16777216.0 * mean_pause_ns);
}

/* Answers are small and one at a time, so they fit the socket's buffer; a peer that does not read gets a reset. */
static int send_bytes(int fd, const Record *record) {
  return send(fd, record->bytes, record->length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)record->length;
}

static void end_stream(int fd) {
  connections[fd]->next_part = 0;
  for (int i = 0; i < streaming_count; i++)
    if (streaming[i] == fd) streaming[i--] = streaming[--streaming_count];
}

static void drop(int fd) {
  end_stream(fd);
  free(connections[fd]->bytes);
  free(connections[fd]);
  connections[fd] = NULL;
  close(fd);
}

static int answer(Connection *c, const char *body, size_t length) {
  if (memmem(body, length, "\"stream\":true", 13) == NULL) return send_bytes(c->fd, &answers[0]);
  if (memmem(body, length, "\"user\":\"burst\"", 14) != NULL) return send_bytes(c->fd, &burst);
  if (c->next_part == 0) streaming[streaming_count++] = c->fd;
  c->next_part = 2;
  c->due_at = now_ns() + next_pause();
  return send_bytes(c->fd, &answers[1]);
}

static void read_requests(Connection *c) {
  if (c->length == MAX_REQUEST) fail("request too long");
  ssize_t n = read(c->fd, c->bytes + c->length, MAX_REQUEST - c->length);
  if (n <= 0) {
    drop(c->fd);
    return;
  }
  c->length += (size_t)n;
  for (;;) {
    char *head_end = memmem(c->bytes, c->length, "\r\n\r\n", 4);
    if (head_end == NULL) return;
    *head_end = 0;
    const char *field = strcasestr(c->bytes, "\r\ncontent-length:");
    *head_end = '\r';
    size_t head = (size_t)(head_end + 4 - c->bytes);
    size_t body = field == NULL ? 0 : strtoul(field + 17, NULL, 10);
    if (c->length < head + body) return;
    if (!answer(c, c->bytes + head, body)) {
      drop(c->fd);
      return;
    }
    c->length -= head + body;
    memmove(c->bytes, c->bytes + head + body, c->length);
  }
}

/* Writes the events that are due and sets the timer to the next one. */
static void advance_streams(void) {
  uint64_t now = now_ns(), next = UINT64_MAX;
  for (int i = 0; i < streaming_count; i++) {
    Connection *c = connections[streaming[i]];
    if (c->due_at <= now) {
      int is_sent = send_bytes(c->fd, &answers[c->next_part++]);
      if (!is_sent || c->next_part == answer_count) {
        i--;
        if (is_sent) end_stream(c->fd);
        else drop(c->fd);
        continue;
      }
      c->due_at += next_pause();
    }
    if (c->due_at < next) next = c->due_at;
  }
  struct itimerspec at = {0};
  if (next != UINT64_MAX) {
    at.it_value.tv_sec = (time_t)(next / 1000000000u);
    at.it_value.tv_nsec = (long)(next % 1000000000u);
  }
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void watch(int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) fail_call("epoll_ctl");
}

static void accept_one(int listener) {
  int on = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  if (fd < 0) return;
  if (fd >= MAX_CONNECTIONS) {
    close(fd);
    return;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connections[fd] = calloc(1, sizeof(Connection));
  connections[fd]->fd = fd;
  connections[fd]->bytes = malloc(MAX_REQUEST);
  watch(fd);
}

int main(int argc, char **argv) {
  if (argc != 3) fail("provider: wrong number of arguments");
  mean_pause_ns = strtoull(argv[1], NULL, 10) * 1000;
  answers = read_records(argv[2], &answer_count);
  for (size_t i = 1; i < answer_count; i++) {
    burst.bytes = realloc(burst.bytes, burst.length + answers[i].length);
    memcpy(burst.bytes + burst.length, answers[i].bytes, answers[i].length);
    burst.length += answers[i].length;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1024) != 0) fail_call("listen");
  getsockname(listener, (struct sockaddr *)&address, &size);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  poller = epoll_create1(0);
  watch(listener);
  watch(timer);
  printf("{\"port\":%d}\n", ntohs(address.sin_port));
  fflush(stdout);
  struct epoll_event events[256];
  for (;;) {
    int n = epoll_wait(poller, events, 256, -1);
    if (n < 0 && errno != EINTR) fail_call("epoll_wait");
    int has_streams = streaming_count > 0;
    for (int i = 0; i < n; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) accept_one(listener);
      else if (fd != timer && connections[fd] != NULL) read_requests(connections[fd]);
    }
    if (has_streams || streaming_count > 0) advance_streams();
  }
}
