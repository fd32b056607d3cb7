// The types of the package, for tsc.
import { type Server, startSteward } from "steward-server";

export async function example(): Promise<void> {
  await using steward: Server = await startSteward({ now: "2026-03-01T00:00:00Z" });
  const organization = await steward.organization({ projects: 2, members: [{ level: 8 }] });
  const [rule] = await organization.faults({ match: { method: "POST" }, effect: { status: 503 } });
  const applied: number | undefined = rule?.applied;
  const { keys } = await organization.clock.advance("72h");
  const ids: (string | null)[] = (await steward.requests({ status: 201 })).map(({ operation }) => operation);
  console.log(applied, keys, ids, organization.members[0]?.level, steward.memberKey?.length);
  // @ts-expect-error A fault has an effect.
  await steward.faults({ match: {} });
}
