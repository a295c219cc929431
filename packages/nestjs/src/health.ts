import { Inject, Injectable } from "@nestjs/common";
import { Carillon } from "./carillon.js";

/** Readiness for `HealthCheckService` of `@nestjs/terminus`: `() => carillon.isHealthy()`. */
@Injectable()
export class CarillonHealthIndicator {
  constructor(@Inject(Carillon) private readonly carillon: Carillon) {}

  /** `down`, with reason and text, while the tasks are not put, or the node is not ready. */
  async isHealthy<Key extends string = "carillon">(
    key: Key = "carillon" as Key,
  ): Promise<Record<Key, { status: "up" | "down"; reason?: string; why?: string }>> {
    const { ready, ...rest } = await this.carillon.readiness();
    return { [key]: { status: ready ? "up" : "down", ...rest } } as Record<Key, { status: "up" | "down" }>;
  }
}
