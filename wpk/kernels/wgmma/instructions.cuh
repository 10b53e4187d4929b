// The instructions behind wgmma.cuh, one for each width: a text of PTX names every register of the accumulators.
#pragma once

#include <wpk/kernels/portable.cuh>

#if WPK_ON_GPU
namespace wpk::detail
{

// WPK_REGISTERS_n: the names of the first n registers. WPK_ACCUMULATORS_n: their operands.
#define WPK_REGISTERS_4 "%0, %1, %2, %3"
#define WPK_ACCUMULATORS_4 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define WPK_REGISTERS_8 WPK_REGISTERS_4 ", %4, %5, %6, %7"
#define WPK_REGISTERS_12 WPK_REGISTERS_8 ", %8, %9, %10, %11"
#define WPK_REGISTERS_16 WPK_REGISTERS_12 ", %12, %13, %14, %15"
#define WPK_REGISTERS_20 WPK_REGISTERS_16 ", %16, %17, %18, %19"
#define WPK_REGISTERS_24 WPK_REGISTERS_20 ", %20, %21, %22, %23"
#define WPK_REGISTERS_28 WPK_REGISTERS_24 ", %24, %25, %26, %27"
#define WPK_REGISTERS_32 WPK_REGISTERS_28 ", %28, %29, %30, %31"
#define WPK_REGISTERS_36 WPK_REGISTERS_32 ", %32, %33, %34, %35"
#define WPK_REGISTERS_40 WPK_REGISTERS_36 ", %36, %37, %38, %39"
#define WPK_REGISTERS_44 WPK_REGISTERS_40 ", %40, %41, %42, %43"
#define WPK_REGISTERS_48 WPK_REGISTERS_44 ", %44, %45, %46, %47"
#define WPK_REGISTERS_52 WPK_REGISTERS_48 ", %48, %49, %50, %51"
#define WPK_REGISTERS_56 WPK_REGISTERS_52 ", %52, %53, %54, %55"
#define WPK_REGISTERS_60 WPK_REGISTERS_56 ", %56, %57, %58, %59"
#define WPK_REGISTERS_64 WPK_REGISTERS_60 ", %60, %61, %62, %63"
#define WPK_REGISTERS_68 WPK_REGISTERS_64 ", %64, %65, %66, %67"
#define WPK_REGISTERS_72 WPK_REGISTERS_68 ", %68, %69, %70, %71"
#define WPK_REGISTERS_76 WPK_REGISTERS_72 ", %72, %73, %74, %75"
#define WPK_REGISTERS_80 WPK_REGISTERS_76 ", %76, %77, %78, %79"
#define WPK_REGISTERS_84 WPK_REGISTERS_80 ", %80, %81, %82, %83"
#define WPK_REGISTERS_88 WPK_REGISTERS_84 ", %84, %85, %86, %87"
#define WPK_REGISTERS_92 WPK_REGISTERS_88 ", %88, %89, %90, %91"
#define WPK_REGISTERS_96 WPK_REGISTERS_92 ", %92, %93, %94, %95"
#define WPK_REGISTERS_100 WPK_REGISTERS_96 ", %96, %97, %98, %99"
#define WPK_REGISTERS_104 WPK_REGISTERS_100 ", %100, %101, %102, %103"
#define WPK_REGISTERS_108 WPK_REGISTERS_104 ", %104, %105, %106, %107"
#define WPK_REGISTERS_112 WPK_REGISTERS_108 ", %108, %109, %110, %111"
#define WPK_REGISTERS_116 WPK_REGISTERS_112 ", %112, %113, %114, %115"
#define WPK_REGISTERS_120 WPK_REGISTERS_116 ", %116, %117, %118, %119"
#define WPK_REGISTERS_124 WPK_REGISTERS_120 ", %120, %121, %122, %123"
#define WPK_REGISTERS_128 WPK_REGISTERS_124 ", %124, %125, %126, %127"
#define WPK_ACCUMULATORS_8 WPK_ACCUMULATORS_4, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define WPK_ACCUMULATORS_12 WPK_ACCUMULATORS_8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define WPK_ACCUMULATORS_16 WPK_ACCUMULATORS_12, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define WPK_ACCUMULATORS_20 WPK_ACCUMULATORS_16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define WPK_ACCUMULATORS_24 WPK_ACCUMULATORS_20, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define WPK_ACCUMULATORS_28 WPK_ACCUMULATORS_24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define WPK_ACCUMULATORS_32 WPK_ACCUMULATORS_28, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define WPK_ACCUMULATORS_36 WPK_ACCUMULATORS_32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define WPK_ACCUMULATORS_40 WPK_ACCUMULATORS_36, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define WPK_ACCUMULATORS_44 WPK_ACCUMULATORS_40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define WPK_ACCUMULATORS_48 WPK_ACCUMULATORS_44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define WPK_ACCUMULATORS_52 WPK_ACCUMULATORS_48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define WPK_ACCUMULATORS_56 WPK_ACCUMULATORS_52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define WPK_ACCUMULATORS_60 WPK_ACCUMULATORS_56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define WPK_ACCUMULATORS_64 WPK_ACCUMULATORS_60, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define WPK_ACCUMULATORS_68 WPK_ACCUMULATORS_64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define WPK_ACCUMULATORS_72 WPK_ACCUMULATORS_68, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define WPK_ACCUMULATORS_76 WPK_ACCUMULATORS_72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define WPK_ACCUMULATORS_80 WPK_ACCUMULATORS_76, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define WPK_ACCUMULATORS_84 WPK_ACCUMULATORS_80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define WPK_ACCUMULATORS_88 WPK_ACCUMULATORS_84, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define WPK_ACCUMULATORS_92 WPK_ACCUMULATORS_88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define WPK_ACCUMULATORS_96 WPK_ACCUMULATORS_92, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define WPK_ACCUMULATORS_100 WPK_ACCUMULATORS_96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define WPK_ACCUMULATORS_104 WPK_ACCUMULATORS_100, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define WPK_ACCUMULATORS_108 WPK_ACCUMULATORS_104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define WPK_ACCUMULATORS_112 WPK_ACCUMULATORS_108, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define WPK_ACCUMULATORS_116 WPK_ACCUMULATORS_112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define WPK_ACCUMULATORS_120 WPK_ACCUMULATORS_116, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define WPK_ACCUMULATORS_124 WPK_ACCUMULATORS_120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define WPK_ACCUMULATORS_128 WPK_ACCUMULATORS_124, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

template <int Count>
struct WgmmaInstruction;

// P0.. are the numbers of the operands behind the accumulators. Kind says types and layouts, as text.
#define WPK_WGMMA(COLUMNS, COUNT, P0, P1, P2, P3, P4, P5, P6, P7)                                        \
    template <>                                                                                          \
    struct WgmmaInstruction<COUNT>                                                                       \
    {                                                                                                    \
        template <class Kind>                                                                            \
        static WPK_DEVICE void run(float (&d)[COUNT], uint64 a, uint64 b, int accumulate)                \
        {                                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P2 ", 0;\n"                                \
                         "wgmma.mma_async.sync.aligned.m64n" COLUMNS "%" P3 " {" WPK_REGISTERS_##COUNT   \
                "}, %" P0 ", %" P1 ", p, 1, 1%" P4 ";\n}"                                                \
                : WPK_ACCUMULATORS_##COUNT                                                               \
                : "l"(a), "l"(b), "r"(accumulate), "C"(Kind::types), "C"(Kind::majors));                 \
        }                                                                                                \
        template <class Kind>                                                                            \
        static WPK_DEVICE void run(float (&d)[COUNT], const uint32 (&a)[4], uint64 b, int accumulate)    \
        {                                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P5 ", 0;\n"                                \
                         "wgmma.mma_async.sync.aligned.m64n" COLUMNS "%" P6 " {" WPK_REGISTERS_##COUNT   \
                "}, {%" P0 ", %" P1 ", %" P2 ", %" P3 "}, %" P4 ", p, 1, 1%" P7 ";\n}"                   \
                : WPK_ACCUMULATORS_##COUNT                                                               \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "C"(Kind::types), \
                "C"(Kind::majorOfB));                                                                    \
        }                                                                                                \
    };
WPK_WGMMA("8", 4, "4", "5", "6", "7", "8", "9", "10", "11")
WPK_WGMMA("16", 8, "8", "9", "10", "11", "12", "13", "14", "15")
WPK_WGMMA("24", 12, "12", "13", "14", "15", "16", "17", "18", "19")
WPK_WGMMA("32", 16, "16", "17", "18", "19", "20", "21", "22", "23")
WPK_WGMMA("40", 20, "20", "21", "22", "23", "24", "25", "26", "27")
WPK_WGMMA("48", 24, "24", "25", "26", "27", "28", "29", "30", "31")
WPK_WGMMA("56", 28, "28", "29", "30", "31", "32", "33", "34", "35")
WPK_WGMMA("64", 32, "32", "33", "34", "35", "36", "37", "38", "39")
WPK_WGMMA("72", 36, "36", "37", "38", "39", "40", "41", "42", "43")
WPK_WGMMA("80", 40, "40", "41", "42", "43", "44", "45", "46", "47")
WPK_WGMMA("88", 44, "44", "45", "46", "47", "48", "49", "50", "51")
WPK_WGMMA("96", 48, "48", "49", "50", "51", "52", "53", "54", "55")
WPK_WGMMA("104", 52, "52", "53", "54", "55", "56", "57", "58", "59")
WPK_WGMMA("112", 56, "56", "57", "58", "59", "60", "61", "62", "63")
WPK_WGMMA("120", 60, "60", "61", "62", "63", "64", "65", "66", "67")
WPK_WGMMA("128", 64, "64", "65", "66", "67", "68", "69", "70", "71")
WPK_WGMMA("136", 68, "68", "69", "70", "71", "72", "73", "74", "75")
WPK_WGMMA("144", 72, "72", "73", "74", "75", "76", "77", "78", "79")
WPK_WGMMA("152", 76, "76", "77", "78", "79", "80", "81", "82", "83")
WPK_WGMMA("160", 80, "80", "81", "82", "83", "84", "85", "86", "87")
WPK_WGMMA("168", 84, "84", "85", "86", "87", "88", "89", "90", "91")
WPK_WGMMA("176", 88, "88", "89", "90", "91", "92", "93", "94", "95")
WPK_WGMMA("184", 92, "92", "93", "94", "95", "96", "97", "98", "99")
WPK_WGMMA("192", 96, "96", "97", "98", "99", "100", "101", "102", "103")
WPK_WGMMA("200", 100, "100", "101", "102", "103", "104", "105", "106", "107")
WPK_WGMMA("208", 104, "104", "105", "106", "107", "108", "109", "110", "111")
WPK_WGMMA("216", 108, "108", "109", "110", "111", "112", "113", "114", "115")
WPK_WGMMA("224", 112, "112", "113", "114", "115", "116", "117", "118", "119")
WPK_WGMMA("232", 116, "116", "117", "118", "119", "120", "121", "122", "123")
WPK_WGMMA("240", 120, "120", "121", "122", "123", "124", "125", "126", "127")
WPK_WGMMA("248", 124, "124", "125", "126", "127", "128", "129", "130", "131")
WPK_WGMMA("256", 128, "128", "129", "130", "131", "132", "133", "134", "135")
#undef WPK_WGMMA

} // namespace wpk::detail
#endif
