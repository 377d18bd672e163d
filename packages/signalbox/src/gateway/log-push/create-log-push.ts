/** Creates the copy of stored calls from the configuration, and its routes. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { Config } from "../../config/index.ts";
import { ConfigError } from "../../config/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import type { CallLog } from "../../engines/call-log/index.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { LogPush } from "./log-push.ts";
import { S3Bucket } from "./s3-bucket.ts";

export interface CreateLogPushParts {
  readonly config: Config;
  readonly database: Database;
  readonly callLog: CallLog;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Null if the configuration has no `gateway.logPush`. */
export function createLogPush({
  config,
  database,
  callLog,
  clock,
  logger,
}: CreateLogPushParts): LogPush | null {
  const settings = config.file.gateway.logPush;
  if (settings === undefined) return null;
  const read = (name: string, key: string): string => {
    const value = config.environment[name];
    if (value === undefined || value === "") {
      throw new ConfigError(`gateway.logPush.${key}: the environment variable ${name} is not set`);
    }
    return value;
  };
  const { endpoint, region, bucket, prefix } = settings;
  const credentials = {
    accessKeyId: read(settings.accessKeyId, "accessKeyId"),
    secretAccessKey: read(settings.secretAccessKey, "secretAccessKey"),
    sessionToken: config.environment["AWS_SESSION_TOKEN"] ?? null,
  };
  return new LogPush({
    options: {
      name: `${endpoint}/${bucket}/${prefix}`,
      prefix,
      intervalMs: settings.intervalMinutes * 60_000,
      withBodies: settings.bodies,
      accounts: settings.accounts ?? null,
    },
    bucket: new S3Bucket({ endpoint, region, bucket, credentials, clock }),
    callLog,
    database,
    clock,
    onError: (error) =>
      logger.error({ err: error }, "cannot copy stored calls to the bucket; retrying within a minute"),
  });
}

const stateResult = z.object({
  enabled: z.boolean(),
  pushed_at: z.iso.datetime().nullable(),
  calls: z.int(),
  last_error: z.string().nullable(),
});

export function logPushRoutes(push: LogPush | null): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: "/log_push",
      access: "root",
      summary: "The state of the copy of stored calls to S3-compatible storage.",
      result: stateResult,
      handler: async () => {
        const state = await push?.state();
        return {
          result: {
            enabled: push !== null,
            pushed_at: state?.pushedAt == null ? null : new Date(state.pushedAt).toISOString(),
            calls: state?.calls ?? 0,
            last_error: state?.lastError ?? null,
          },
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: "/log_push/run",
      access: "root",
      summary: "Copy the stored calls since the last run now, without waiting for the hour.",
      result: z.object({ calls: z.int() }),
      handler: async () => {
        if (push === null) {
          throw new SignalboxError("conflict", { message: "gateway.logPush is not configured" });
        }
        try {
          return { result: { calls: await push.run() } };
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          throw new SignalboxError("storage_unavailable", {
            message: `The bucket refused the calls: ${reason}`,
            cause: error,
          });
        }
      },
    }),
  ];
}
