import { putAll } from "../../schedules.mjs";

export const dynamic = "force-dynamic";

export async function GET() {
  return Response.json(await putAll());
}
