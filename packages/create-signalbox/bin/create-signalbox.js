#!/usr/bin/env node
// `npm create signalbox`. Runs on Node 20: the project that it creates brings Node 24 where it is missing.
import process from "node:process";

const { runCreate } = await import(new URL("../src/main.ts", import.meta.url).href);
process.exitCode = await runCreate(process.argv.slice(2));
