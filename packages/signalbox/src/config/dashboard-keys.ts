/** The `dashboard` section of the configuration file. */
import { z } from "zod";

export const dashboardKeys = z
  .strictObject({
    /**
     * Host names of the dashboard, without port, in addition to IP addresses, `localhost` and the name of this machine, e.g. the name that a
     * reverse proxy forwards. A session is refused under any other name, to prevent DNS rebinding. Default: none.
     */
    allowedHosts: z.array(z.string().min(1).max(253).toLowerCase()).max(64).default([]),
  })
  .prefault({});
