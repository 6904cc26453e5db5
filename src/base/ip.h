/* Which families of addresses to use. */
#ifndef BASE_IP_H
#define BASE_IP_H

enum ip_mode { IP_ANY, IP_4, IP_6 };

#endif
