import { DurableObject } from "cloudflare:workers";

class Room extends DurableObject {
  enter(who) {
    const seen = this.ctx.storage.kv.get("seen") ?? [];
    this.ctx.storage.kv.put("seen", [...seen, who]);
    return [...seen, who];
  }
}

export { Room as ChatRoom };
