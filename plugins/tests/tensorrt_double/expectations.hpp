// What a driver asks for: what must hold of a right plugin, and what a plugin may refuse.
#pragma once

namespace wpk_test
{

// What stops a life: the plugin refused.
struct Refused
{
};

// Ends the program where a right plugin would not have come.
void require(bool holds, const char* what);

// Throws Refused where the plugin said no.
void accept(bool holds);

} // namespace wpk_test
