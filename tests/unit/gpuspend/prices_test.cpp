// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/prices.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace gpusnoop;

TEST_CASE("a model has the price of the first line that matches it", "[spend]")
{
    const Prices prices("gpu_model_glob,price_per_gpu_hour,currency\n"
                        "# what we pay\n\n"
                        "*H100*, 2.95, EUR # reserved\n"
                        "NVIDIA A*,1\r\n"
                        "*,0.000001",
                        "f");
    CHECK(prices.of("NVIDIA H100 80GB HBM3") == 2'950'000);
    CHECK(prices.of("NVIDIA A100-SXM4-80GB") == 1'000'000);
    CHECK(prices.of("") == 1);
    CHECK(prices.currency() == "EUR");
    CHECK(!Prices().of("NVIDIA H100"));
    CHECK(!Prices("*H100*,1", "f").of("A100"));
}

TEST_CASE("OpenCost's custom pricing is parsed", "[spend]")
{
    const Prices prices(R"({"provider":"custom","CPU":"0.03","GPU":"0.95","spotGPU":"0.3"})", "f");
    CHECK(prices.of("anything") == 950'000);
    CHECK(prices.currency() == "USD");
    CHECK_THROWS_AS(Prices(R"({"CPU":"0.03"})", "f"), Error);
    CHECK_THROWS_AS(Prices(R"({"GPU":"cheap"})", "f"), Error);
    CHECK_THROWS_AS(Prices(R"({"GPU":"1")", "f"), Error);
}

TEST_CASE("prices may depend on the day and the node", "[spend]")
{
    constexpr uint64_t day = 86'400'000'000'000, year_2026 = 20'454 * day; // 2026-01-01
    const char* const text = "*H100*,3,USD,2026-01-01\n*H100*,2.5,USD,2026-02-01\n*,2,,2026-01-01,spot-*\n*,1,USD\n";
    const Prices prices(text, "f", "n1");
    CHECK(prices.of("H100", year_2026 - 1) == 1'000'000);
    CHECK(prices.of("H100", year_2026) == 3'000'000);
    CHECK(prices.of("H100", year_2026 + 31 * day - 1) == 3'000'000);
    CHECK(prices.of("H100", year_2026 + 31 * day) == 2'500'000);
    CHECK(prices.of("A100") == 1'000'000);
    CHECK(Prices(text, "f", "spot-7").of("A100", year_2026) == 2'000'000);
    CHECK(Prices(text, "f", "spot-7").of("A100", year_2026 - 1) == 1'000'000);
    CHECK(!Prices("*,1,USD,,gpu-*", "f", "n1").of("A100"));
}

TEST_CASE("an error in a price file names the line", "[spend]")
{
    for (const char* line :
         {"*", "*,", ",1", "*,x", "*,-1", "*,1.0000001", "*,1000000", "*,1,dollars", "*,1,USD,x", "*,1,USD,2026-02-30",
          "*,1,USD,2026-1-1", "*,1,USD,,", "*,1,USD,,*,x", "*,1e3", "*,.", "*,99999999999999999999999"})
        CHECK_THROWS_MATCHES(Prices(std::string("*,1,USD\n") + line, "f"), Error,
                             Catch::Matchers::MessageMatches(Catch::Matchers::StartsWith("'f', line 2")));
    CHECK_THROWS_AS(Prices("a,1,USD\nb,1,EUR", "f"), Error);
    CHECK_THROWS_AS(Prices("# nothing\n", "f"), Error);
    CHECK_THROWS_AS(Prices("", "f"), Error);
    CHECK_THROWS_AS(Prices::of_file("/nonexistent"), Error);
    CHECK_THROWS_AS(Prices::of_file("/dev/zero"), Error);
    CHECK_THROWS_AS(Prices::of_file("/"), Error);
}

TEST_CASE("money_text and parse_price", "[spend]")
{
    CHECK(money_text(71'015'000, "USD") == "$71.02");
    CHECK(money_text(0, "EUR") == "€0.00");
    CHECK(money_text(4'999, "GBP") == "£0.00");
    CHECK(money_text(1'234'567'890'000, "CHF") == "1234567.89 CHF");
    CHECK(parse_price("2.5") == 2'500'000);
    CHECK(parse_price("999999.999999") == 999'999'999'999);
    CHECK(!parse_price("1.2.3"));
    CHECK(!parse_price(" 1"));
}
