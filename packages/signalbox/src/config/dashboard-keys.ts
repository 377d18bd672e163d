/** Configuration of the dashboard. */
import { z } from "zod";

export const dashboardKeys = z
  .strictObject({
    /**
     * Host names the dashboard is reached by, beside addresses, `localhost` and this machine's name: the name a reverse proxy passes
     * on, say. Without a port. A session is refused under any other name (DNS rebinding). Default none.
     */
    allowedHosts: z.array(z.string().min(1).max(253).toLowerCase()).max(64).default([]),
  })
  .prefault({});
