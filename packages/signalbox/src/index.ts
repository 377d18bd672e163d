export { defineConfig, type ConfigFileInput } from "./config/index.ts";
export { SignalboxError } from "@signalbox/protocol";
