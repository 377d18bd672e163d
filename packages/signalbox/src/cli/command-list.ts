/** All commands, in the order of the overview. */
import { accountCommands } from "./account.ts";
import { agentCommands } from "./agents.ts";
import { alertCommands } from "./alerts.ts";
import { auditCommands } from "./audit.ts";
import { backupCommands } from "./backup.ts";
import { createCompleteCommand } from "./completion/complete-command.ts";
import { completion } from "./completion/completion-command.ts";
import { configCommand } from "./config.ts";
import { clusterCommands } from "./cluster.ts";
import { dev } from "./dev.ts";
import { doctor } from "./doctor.ts";
import { gatewayCommands } from "./gateway.ts";
import { importCloudflare } from "./import-cloudflare.ts";
import { importHookdeck } from "./import-hookdeck.ts";
import { importCommands } from "./import-litellm.ts";
import { importPortkey } from "./import-portkey.ts";
import { priceCommands } from "./prices.ts";
import { init } from "./init.ts";
import { loginLink } from "./login-link.ts";
import { logsCommands } from "./logs.ts";
import { logsWorkCommands } from "./logs-work.ts";
import { routeCommands } from "./routes.ts";
import { providerKeyCommands } from "./provider-keys.ts";
import { restore } from "./restore.ts";
import { serve } from "./serve.ts";
import { tagCommands } from "./tags.ts";
import { tagJobCommands } from "./tags-jobs.ts";
import { tagWorkCommands } from "./tags-work.ts";
import { tokenCommands } from "./token.ts";
import { usageCommand } from "./usage.ts";
import { version } from "./version-command.ts";
import { webhookCommands } from "./webhooks.ts";
import type { Command } from "./command.ts";

export const COMMANDS: readonly Command[] = [
  serve,
  dev,
  init,
  loginLink,
  doctor,
  version,
  completion,
  createCompleteCommand(() => COMMANDS),
  ...backupCommands,
  restore,
  configCommand,
  ...accountCommands,
  ...clusterCommands,
  ...tokenCommands,
  ...auditCommands,
  ...providerKeyCommands,
  ...logsCommands,
  ...logsWorkCommands,
  usageCommand,
  ...agentCommands,
  ...gatewayCommands,
  ...priceCommands,
  ...importCommands,
  importCloudflare,
  importHookdeck,
  importPortkey,
  ...routeCommands,
  ...tagCommands,
  ...tagWorkCommands,
  ...tagJobCommands,
  ...webhookCommands,
  ...alertCommands,
];
