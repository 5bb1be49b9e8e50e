// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/who/container_host.hpp"

#include <ctime>

using namespace gpusnoop;
using namespace gpusnoop::container_host;

TEST_CASE("an invalid id is not used in a path", "[containers]")
{
    const Host host;
    // Files that invalid ids would lead to if they were used in paths.
    host.file("run/containerd/io.containerd.runtime.v2.task/config.json", oci_config(cri_annotations()));
    host.file("run/containerd/io.containerd.runtime.v2.task/k8s.io/config.json", oci_config(cri_annotations()));
    host.file("var/lib/docker/config.v2.json", docker_config("/web", nullptr));
    host.file("var/lib/docker/containers/config.v2.json", docker_config("/web", nullptr));
    host.file(task("WEB"), oci_config(cri_annotations()));
    for (const std::string& bad :
         {std::string(".."), std::string("../../.."), std::string("."), std::string(), "../k8s.io/" + id,
          std::string("WEB"), id + '/', id + '\0', std::string(4096, 'a'), std::string("\xff\xfe")}) {
        INFO(bad);
        check(host.containers().find({.container_id = bad, .pod_uid = bad}), {});
    }
    CHECK(host.containers().find_pod("ml-team", "trainer-0").container_ids.empty());
}

TEST_CASE("unsuitable files are ignored", "[containers]")
{
    const Host host;
    SECTION("a FIFO without a writer")
    {
        host.fifo(task(id));
        host.fifo(docker(id));
    }
    SECTION("a folder")
    {
        host.folder(task(id));
        host.folder(docker(id));
    }
    SECTION("a link")
    {
        host.file("elsewhere", oci_config(cri_annotations()));
        host.link(task(id), "/elsewhere");
        host.link(docker(id), "/dev/zero");
    }
    SECTION("a folder that is a link to one outside of the root")
    {
        const Host outside;
        outside.file(id + "/config.json", oci_config(cri_annotations()));
        host.link(task(id).substr(0, task(id).rfind('/')), outside.file(id));
        check(host.find(id), {});
    }
    SECTION("a file that is too long")
    {
        const std::string good = oci_config(cri_annotations());
        host.file(task(id), good + std::string(HostFiles::max_size - good.size(), ' '));
        CHECK(host.find(id).container == "trainer");
        host.file(task(id), good + std::string(HostFiles::max_size - good.size() + 1, ' '));
    }
    SECTION("a sparse file of many gigabytes")
    {
        host.file(docker(id), docker_config("/web", nullptr));
        std::filesystem::resize_file(host.file(docker(id)), uint64_t{1} << 36);
    }
    check(host.find(id), {});
    CHECK(host.containers().find_named("web").empty());
    CHECK(host.containers().find_pod("ml-team", "trainer-0").container_ids.empty());
}

TEST_CASE("malformed JSON is ignored, and takes linear time", "[containers][long]")
{
    const Host host;
    const std::clock_t start = std::clock();
    const auto repeated = [](const std::string& piece) {
        std::string text;
        while (text.size() + piece.size() <= HostFiles::max_size)
            text += piece;
        return text;
    };
    const std::string good = oci_config(cri_annotations());
    std::vector<std::string> texts = {std::string(100, '\0'), good + "x"};
    for (const char* text : {"", "null", "\"annotations\"", "[]", "{", "}", "]", "{\"annotations\"", "\xff\xfe\xfd"})
        texts.push_back(text);
    texts.insert(texts.end(), {R"(["annotations","io.kubernetes.cri.container-name","x"])",
                               R"({"annotations":"io.kubernetes.cri.container-name"})",
                               R"({"annotations":[{"io.kubernetes.cri.container-name":"x"}]})",
                               R"({"linux":{"io.kubernetes.cri.container-name":"x"}})",
                               R"({"a":{"annotations":{"io.kubernetes.cri.container-name":"x"}}})"});
    for (const char* piece : {"[", "{\"a\":", "[{\"a\":", "1", "\\"})
        texts.push_back(repeated(piece));
    texts.insert(texts.end(),
                 {"\"" + repeated("\\u0000"), "[" + repeated("0,"), "{" + repeated("\"annotations\":{},")});
    for (size_t length = 0; length < good.size(); length += 7)
        texts.push_back(good.substr(0, length));
    for (const std::string& text : texts) {
        INFO(text.substr(0, 80) << " of " << text.size());
        host.file(task(id), text);
        const ContainerNames got = host.find(id);
        CHECK((got == ContainerNames{} || got == ContainerNames{.runtime = "containerd"}));
    }
    for (const std::string& text : texts) {
        INFO(text.substr(0, 80) << " of " << text.size());
        host.file(task(id), "{}");
        host.file(docker(id), text);
        host.file(stored(id), text);
        host.file("var/lib/containers/storage/overlay-containers/containers.json", text);
        host.file("etc/docker/daemon.json", text);
        host.file("etc/passwd", text);
        CHECK(host.find(id).container.empty());
        CHECK(host.find(id).pod.empty());
    }
    // Quadratic time would take hours. The build with sanitizers needs 40 seconds of CPU time.
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 300);
}

TEST_CASE("values that are not strings are ignored", "[containers]")
{
    const Host host;
    for (const json& value : std::vector<json>{nullptr, true, -1, 1e300, json::array({"x"}), {{"x", "y"}}}) {
        INFO(value.dump());
        json annotations = cri_annotations();
        for (auto& annotation : annotations)
            annotation = value;
        host.file(task(id), oci_config(annotations));
        check(host.find(id), {.runtime = "containerd"});

        host.file(task(id), oci_config(value.is_object() ? json("x") : value));
        check(host.find(id), {.runtime = "containerd"});

        host.file(docker(other_id),
                  json{{"Name", value}, {"Config", {{"Image", value}, {"Labels", value.is_object() ? json() : value}}}}
                      .dump());
        check(host.find(other_id), {.runtime = "docker"});
        host.file(docker(other_id), json{{"Name", "/web"}, {"Config", value}}.dump());
        check(host.find(other_id), {.container = "web", .runtime = "docker"});

        host.file("var/lib/containers/storage/overlay-containers/containers.json",
                  json{{{"id", value}, {"names", value.is_array() ? json() : value}, {"metadata", value}},
                       {{"id", pause_id}, {"names", value.is_array() ? json() : value}, {"metadata", value}},
                       value}
                      .dump());
        check(host.find(pause_id), {.runtime = "podman"});
    }
}

TEST_CASE("long names are truncated, and otherwise unchanged", "[containers]")
{
    const Host host;
    const std::string odd = "\x1b[2J\n\"\\\u202e\u0007";
    json annotations = cri_annotations();
    annotations["io.kubernetes.cri.container-name"] = odd;
    annotations["io.kubernetes.cri.sandbox-name"] = std::string(4096, 'p');
    annotations["io.kubernetes.cri.sandbox-namespace"] = std::string(4097, 'n');
    host.file(task(id), oci_config(annotations));
    ContainerNames got = host.find(id);
    CHECK(got.container == odd);
    CHECK(got.pod == std::string(4096, 'p'));
    CHECK(got.pod_namespace.empty());
    CHECK(got.image == "nvcr.io/nvidia/pytorch:24.05-py3");

    // Text that is not UTF-8 is not JSON.
    host.file(task(id), R"({"annotations":{"io.kubernetes.cri.container-name":")"
                        "\xff"
                        R"("}})");
    check(host.find(id), {});
    // A duplicate key.
    host.file(task(id), R"({"annotations":{"nerdctl/name":"first","nerdctl/name":"second"}})");
    CHECK(host.find(id).container == "first");

    // File names may contain any bytes.
    host.link("var/log/containers/\xff\x1b_\n_\xfe-" + other_id + ".log", "/nowhere");
    check(host.find(other_id), {.container = "\xfe", .pod = "\xff\x1b", .pod_namespace = "\n"});
}
