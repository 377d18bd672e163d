/**
 * The api of the worker's area: programs written for Cloudflare Workers on this server.
 *
 *   door        requests and WebSockets of the network
 *   events      cron triggers and email
 *   program     the user's module, its environment and its handlers
 *   loader      programs that are loaded at run time, each in a process
 *   html        `HTMLRewriter`
 *   ai          `env.AI` through the gateway
 *   workflows   durable steps on objects
 *   assets      static files
 *   settings    the wrangler file
 *   modules     `cloudflare:…`
 */
export { createWorkerArea, type WorkerArea } from "./worker-area.ts";
