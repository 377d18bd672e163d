/*
 * A file of records: each is a length (32 bits, little-endian) and that many bytes. The benchmark writes requests and
 * answers in this format, so that neither program has to know their content.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  char *bytes;
  size_t length;
} Record;

static void fail(const char *reason) {
  fprintf(stderr, "%s\n", reason);
  exit(1);
}

/* For a failed system call. */
static void fail_call(const char *what) {
  perror(what);
  exit(1);
}

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns all records of the file; they are kept until the program ends. */
static Record *read_records(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_call(path);
  Record *records = NULL;
  size_t used = 0, room = 0;
  uint8_t prefix[4];
  while (fread(prefix, 1, 4, file) == 4) {
    if (used == room) records = realloc(records, (room = room * 2 + 64) * sizeof *records);
    Record *record = &records[used++];
    record->length = prefix[0] | prefix[1] << 8 | prefix[2] << 16 | (size_t)prefix[3] << 24;
    record->bytes = malloc(record->length + 1);
    if (fread(record->bytes, 1, record->length, file) != record->length) fail("short record");
    record->bytes[record->length] = 0;
  }
  fclose(file);
  if (used == 0) fail("no record in the file");
  *count = used;
  return records;
}

#endif
