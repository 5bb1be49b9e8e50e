// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/teams.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("an owner has the team of the first line that matches it", "[spend]")
{
    const Teams teams("# who pays\n"
                      "vision, pod, research/trainer-* # and its like\n"
                      "science,namespace,research\n"
                      "ops,user,root\n"
                      "batch,job,12*\n"
                      "data,cgroup,/data.slice/*\r\n"
                      "speech,label,example.com/team=speech-*\n",
                      "f");
    Owner pod;
    pod.where.pod_uid = "u";
    pod.names.pod_namespace = "research";
    pod.names.pod = "trainer-0";
    CHECK(teams.of(pod, "root") == "vision");
    pod.names.pod = "notebook-0";
    CHECK(teams.of(pod, "root") == "science");
    CHECK(teams.of({}, "root") == "ops");
    CHECK(teams.of({}, "alice").empty());
    Owner labelled;
    labelled.names.labels = {"app=asr", "example.com/team=speech-2"};
    CHECK(teams.of(labelled, "") == "speech");
    labelled.names.labels = {"other=example.com/team=speech-2"};
    CHECK(teams.of(labelled, "").empty());
    Owner job;
    job.where.slurm_job = "1234";
    CHECK(teams.of(job, "") == "batch");
    Owner cgroup;
    cgroup.cgroup = "/data.slice/a/b";
    CHECK(teams.of(cgroup, "") == "data");
    Owner of_user; // names chosen by the user do not count
    of_user.names.container = "trainer";
    of_user.where.container_id = "3f2a";
    of_user.where.unit = "trainer.service";
    of_user.where.named_by_user = true;
    const Teams by_name("a,container,trainer\nb,unit,trainer.service\nc,user,alice\n", "f");
    CHECK(by_name.of(of_user, "alice") == "c");
    of_user.where.named_by_user = false;
    CHECK(by_name.of(of_user, "alice") == "a");
    CHECK(!Teams().any());
}

TEST_CASE("an error in a team file names the line", "[spend]")
{
    for (const char* text :
         {"a", "a,b", "a,namespace", "a,namespace,", ",namespace,x", "a,label,x", "a,labels,x=y", "", "# none\n", ",,"})
        CHECK_THROWS_AS(Teams(text, "f"), Error);
}
