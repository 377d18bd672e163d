/**
 * `node --import signalbox/testing/register --test`: Node strips types but does not know decorators, so a test could not import an agent. From here
 * on, files are loaded as `signalbox serve` loads them. With `--enable-source-maps`, the test runner names the lines of the sources, too.
 */
import { registerModuleHooks } from "../agents/index.ts";

await registerModuleHooks();
